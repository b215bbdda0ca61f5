"""What looks like a secret is masked wherever it stands, and what only reads like one is left alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.studio.items import MOST_ITEM_BYTES, shaped
from incarnate.studio.masking import MASK, mask_json, mask_text

LETTERS = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ"
SECRETS = [
    f"sk-{LETTERS}",
    f"sk-{'ant'}-{LETTERS}",
    f"sk-proj-{LETTERS}",
    f"sk_live_{LETTERS}",
    f"ghp_{LETTERS}",
    f"github_pat_{LETTERS}",
    f"glpat-{LETTERS}",
    "AKIA2E0A8F3B244C9986",
    f"AIza{LETTERS}abc",
    f"xoxb-{LETTERS}",
    f"npm_{LETTERS}abcd",
    f"hf_{LETTERS}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{LETTERS}",
    f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{LETTERS}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\\nMIIE{LETTERS}",
]
PLAIN = [
    "bearer authentication is what the API uses",
    "Basic understanding of tokens",
    "api_key = os.environ['API_KEY']",
    "max_tokens: 4096, secret santa",
    "the password: see above",
    "sk-short",
    "https://example.org:8080/path@2",
    "task-management-system-overview-page",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abxyz_-é", max_size=10), inner, max_size=4),
)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_amid_a_text_and_in_json_inside_json(secret: str) -> None:
    value = {"text": f"it is {secret} .", "native": json.dumps({"deep": [secret]})}
    masked = json.loads(mask_json(json.dumps(value).encode()))
    assert f"it is {MASK}" == masked["text"][:14]
    assert LETTERS not in json.dumps(masked)
    assert secret not in json.dumps(masked)


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {LETTERS}",
        f'{{"api_key": "{LETTERS}"}}',
        f"export OPENAI_API_KEY={LETTERS}",
        f"AWS_SECRET_ACCESS_KEY: {LETTERS}",
        f"password={LETTERS}",
        f"curl -u x -H 'client-secret: {LETTERS}'",
        f"postgresql://me:{LETTERS}@host/db",
    ],
)
def test_what_stands_behind_a_name_of_a_secret_is_masked(text: str) -> None:
    assert LETTERS not in mask_text(text)
    assert MASK in mask_text(text)


@pytest.mark.parametrize("text", PLAIN)
def test_prose_and_code_stay_as_they_are(text: str) -> None:
    assert text == mask_text(text)


def test_a_value_below_a_secrets_name_is_masked_whole() -> None:
    value: dict[str, Any] = {"password": ["x y"], "env": {"MY_API_KEY": "short", "PATH": "/bin"}, "api_key": 123456}
    expected = {"password": [MASK], "env": {"MY_API_KEY": MASK, "PATH": "/bin"}, "api_key": MASK}
    assert expected == json.loads(mask_json(json.dumps(value).encode()))


def test_an_escape_hides_no_letter_of_a_secret() -> None:
    assert LETTERS not in mask_json(rf'{{"t":"\u0073\u006b-{LETTERS}"}}'.encode()).decode()


@given(VALUES)
def test_what_holds_no_secret_is_the_same_value(value: Any) -> None:
    data = json.dumps({"v": value}).encode()
    assert {"v": value} == json.loads(mask_json(data))


@given(VALUES, st.sampled_from(SECRETS))
def test_wherever_a_secret_stands_what_is_left_is_json_without_it(value: Any, secret: str) -> None:
    data = json.dumps({"v": [value, secret, {secret: secret}]}).encode()
    masked = mask_json(data)
    assert secret not in json.dumps(json.loads(masked))


@pytest.mark.parametrize(
    "value", ["x" * 10**6, ["y" * 1000] * 2000, {f"k{n}": "z" * 100 for n in range(20_000)}, [0] * 10**6]
)
def test_an_item_that_is_too_large_is_cut_and_says_how_large_it_was(value: Any) -> None:
    data = json.dumps({"type": "tool-result", "id": "e", "result": value}).encode()
    item = shaped(7, data, mask=True)
    assert len(item.data) <= MOST_ITEM_BYTES
    assert len(data) == item.cut
    assert ("tool-result", "e") == (json.loads(item.data)["type"], json.loads(item.data)["id"])


def test_an_item_that_is_small_is_not_touched() -> None:
    data = b'{"n":12345678901234567890,"f":1e2}'
    assert (7, data, None) == shaped(7, data, mask=True)
