"""What stands behind a secret's name is masked in every writing of it, and code, types and prose are not."""

import base64
import json
from typing import Any

import pytest

from incarnate.studio.masking import MASK, mask_json, mask_text, mask_value

LETTERS = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ"
WORD = "abcdefghijKLMNOPQRSTuvwx"
LOGIN = base64.b64encode(b"user:password").decode()
NAMES = [
    *(
        "token",
        "GITHUB_TOKEN",
        "access_token",
        "SECRET",
        "client-secret",
        "password",
        "PGPASSWORD",
        "apiKey",
        "api_key",
    ),
    *("x-api-key", "API key", "SECRET_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASS", "GH_PAT", "pwd", "passphrase"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "writing",
    ["{}={}", "{}: {}", '{}="{}"', "{}: '{}'", '{} = "{}"', '"{}": "{}"', r"\"{}\": \"{}\"", "{}%3D{}", '"{}","{}"'],
)
def test_a_value_behind_a_name_is_masked(name: str, writing: str) -> None:
    text = writing.format(name, LETTERS)
    assert text.replace(LETTERS, MASK) == mask_text(text)


@pytest.mark.parametrize("name", ["token", "api-key", "github-token", "password", "secret"])
@pytest.mark.parametrize("writing", ["run --{} {} now", "run --{}={} now", 'run --{} "{}" now', "https://x/?a=b&{}={}"])
def test_a_value_of_an_argument_is_masked(name: str, writing: str) -> None:
    text = writing.format(name, LETTERS)
    assert text.replace(LETTERS, MASK) == mask_text(text)


@pytest.mark.parametrize("header", ["Authorization", "authorization", "AUTHORIZATION", "Proxy-Authorization"])
@pytest.mark.parametrize(
    "value",
    [f"Bearer {LETTERS}", f"bearer {WORD}", f"Basic {LOGIN}", f"token {LETTERS}", LETTERS, f"ApiKey {LETTERS}"],
)
def test_an_authorization_is_masked_whatever_its_scheme(header: str, value: str) -> None:
    secret = value.rsplit(maxsplit=1)[-1]
    for writing in ("{}: {}", "curl -H '{}: {}'", '{{"{}": "{}"}}', '["{}", "{}"]', r"{{\"{}\": \"{}\"}}"):
        text = writing.format(header, value)
        assert secret not in mask_text(text), text
        assert MASK in mask_text(text)


@pytest.mark.parametrize(
    "text", ["Cookie: session=a1b2c3; id=xyz", "set-cookie: sid=zzqqww; Path=/", "COOKIE: a=zzqqww"]
)
def test_a_cookie_is_masked(text: str) -> None:
    name = text.split(":", maxsplit=1)[0]
    assert f"{name}: {MASK}" == mask_text(text)
    assert f'"{name}: {MASK}"' == mask_text(f'"{text}"')


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"https://{LETTERS}@github.com/x", f"https://{MASK}@github.com/x"),
        ("HTTPS://user:secretpass1@host/", f"HTTPS://user:{MASK}@host/"),
        ("redis://:hunter2@host", f"redis://:{MASK}@host"),
        ("postgresql://u:p@ss@db/x", f"postgresql://u:{MASK}@db/x"),
        (f"curl -u admin:{LETTERS} https://x", f"curl -u admin:{MASK} https://x"),
        (f"?sv=2020&sig={LETTERS}%3D", f"?sv=2020&sig={MASK}"),
        (f"machine x login me password {LETTERS}", f"machine x login me password {MASK}"),
        (f"it says Bearer {LETTERS}.", f"it says Bearer {MASK}"),
    ],
)
def test_what_logs_in_by_an_address_or_a_command_is_masked(text: str, shown: str) -> None:
    assert shown == mask_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "password = get_password()",
        "id_token: Optional[str] = None",
        "password: required",
        "api_key: str = Field()",
        "api_key = os.environ['API_KEY']",
        "API_KEY=${API_KEY}",
        "API_KEY=your-api-key-here",
        "password=request.form",
        "password: SecretStr = Field",
        "const secretKey = generateKey()",
        "max_tokens: 12345678",
        "token_count: 1234567890",
        "auth_token_expired: false1",
        "cache_read_input_tokens: 123456789",
        "access_token: string",
        "the secret token: the word",
        'password = input("Password: ")\nuser = input("User: ")',
        "passwd:x:1000:1000:user",
        "private_key: /etc/ssl/private/key1.pem",
        "std::token::Kind1234567",
        "if token == other_token1:",
        "Authorization: see below for what that means",
        "Authorization: Bearer <token>",
        "bearer authentication1234",
        "basic functionality/v2",
        "basic auth/OAuth2.0/OpenID",
        "Basic Information2024",
        "cookie: a small file",
        "https://host:8080/path@x",
        "ssh://git@host:22/x",
        "docker run --user 1000:1000 image",
        "--token-file /etc/token1",
    ],
)
def test_code_types_and_prose_are_left_alone(text: str) -> None:
    assert text == mask_text(text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": ["hunter2"]}, {"password": [MASK]}),
        ({"api_key": 12345678901234}, {"api_key": MASK}),
        ({"headers": [["Authorization", "X"]]}, {"headers": [["Authorization", MASK]]}),
        ({"headers": ["Host", "y", "cookie", "X"]}, {"headers": ["Host", "y", "cookie", MASK]}),
        ({"name": "Set-Cookie", "value": "X"}, {"name": "Set-Cookie", "value": MASK}),
        ({"env": {"GITHUB_TOKEN": "X"}}, {"env": {"GITHUB_TOKEN": MASK}}),
        ({"secret": "X", "n": 1}, {"secret": MASK, "n": 1}),
        ({"credentials": {"user": "me", "deep": [{"a": "b"}]}}, {"credentials": {"user": MASK, "deep": [{"a": MASK}]}}),
        ({"argv": ["x", "--password", "hunter2"]}, {"argv": ["x", "--password", MASK]}),
    ],
)
def test_what_an_object_says_is_secret_is_masked_whole(value: Any, shown: Any) -> None:
    assert shown == mask_value(value)
    inside = json.loads(mask_json(json.dumps({"native": json.dumps(value)}).encode()))
    assert shown == json.loads(inside["native"]), "in JSON inside JSON too"


@pytest.mark.parametrize(
    "value",
    [
        {"tokens": {"input": 5}, "token": 5, "password": None, "secret": "", "token_count": 123456},
        {"required": ["password", "username"], "pass": 12, "auth": "none"},
        {"name": "password", "type": "string"},
    ],
)
def test_what_counts_or_describes_is_left_alone(value: Any) -> None:
    assert value is mask_value(value)


def test_names_that_are_masked_stay_apart() -> None:
    names = [f"sk-{letter * 3}1{LETTERS}" for letter in "abc"]
    value = {name: number for number, name in enumerate(names)} | {f"{MASK[:-1]} 2]": 7}
    assert {MASK: 0, "[masked 3]": 1, "[masked 4]": 2, "[masked 2]": 7} == mask_value(value)
