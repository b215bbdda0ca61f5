"""Secrets without a beginning of their own, known by their shape or by the command that they are given to."""

import base64
import json

import pytest

from incarnate.studio.masking import MASK, mask_text, mask_value

TELEGRAM = "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_"[:35]
HEX = "0123456789abcdef" * 2
PARTS = ("GxYzAb", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJxYzabc")


def user(number: int) -> str:
    return base64.urlsafe_b64encode(str(number).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"it is 123456789:{TELEGRAM}.", f"it is {MASK}."),
        (f"https://api.telegram.org/bot1234567890:{TELEGRAM}/getMe", f"https://api.telegram.org/bot{MASK}/getMe"),
        (f"{user(10**17)}.{PARTS[0]}.{PARTS[1][:27]}", MASK),
        (f"login({user(999 * 10**15)}.{PARTS[0]}.{PARTS[1]})", f"login({MASK})"),
        (f"client.run {user(34567890123456789012)}.{PARTS[0]}.{PARTS[1]}", f"client.run {MASK}"),
        (f"{user(10**17)}.{PARTS[0]}.{PARTS[1]}", MASK),
        (
            f"curl -X POST /Accounts/AC{HEX}/Messages -u AC{HEX}:{HEX}",
            f"curl -X POST /Accounts/{MASK}/Messages -u {MASK}:{MASK}",
        ),
        (f"the key SK{HEX} has the secret {PARTS[1][:32]}", f"the key {MASK} has the secret {MASK}"),
        (f"token {HEX} of AC{HEX}", f"token {MASK} of {MASK}"),
    ],
)
def test_a_secret_of_such_a_shape_is_masked(text: str, shown: str) -> None:
    assert shown == mask_text(text)
    assert shown == json.loads(mask_text(json.dumps([text])))[0]


@pytest.mark.parametrize(
    "text",
    [
        f"md5 {HEX}",
        f"the blob {HEX} is of commit {HEX}89abcdef",
        f"12345:{TELEGRAM}",
        f"123456789:{TELEGRAM}x",
        "2024-01-01T12345678:some_identifier_that_is_long_enough",
        "src/app.py:12345678:" + "a" * 35,
        "12345678:SOME_CONSTANT_OF_35_LETTERS_IN_ALL_",
        "10.20.30.40:12345678:abc",
        "MyClassOfALongNameInAModule.method.something_else_that_is_long",
        "NotificationServiceFactories.create.a_test_of_whether_it_is_so",
        "MTIzNDU2Nzg5MDEyMzQ1Njc4 is base64",
        "ACCOUNT SKETCH ACME SKU",
        f"ACK{HEX}",
        f"AC{HEX}0",
        f"AC{HEX.upper()}",
        "mfa.enabled",
        "https://discord.com/api/webhooks/guides",
    ],
)
def test_what_only_looks_a_little_like_one_is_left_alone(text: str) -> None:
    assert text == mask_text(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mysql -u root -phunter2 db", f"mysql -u root -p{MASK} db"),
        ("/usr/bin/mysql --host=h -ps3cret -e 'select 1'", f"/usr/bin/mysql --host=h -p{MASK} -e 'select 1'"),
        ("mysqldump -p'two words' x > y.sql", f"mysqldump -p'{MASK}' x > y.sql"),
        ('mysqladmin -p"it\'s" ping', f'mysqladmin -p"{MASK}" ping'),
        ("cd /x && mariadb-dump -pabc x", f"cd /x && mariadb-dump -p{MASK} x"),
        ("mysql -pone; mysql -ptwo", f"mysql -p{MASK}; mysql -p{MASK}"),
        ("sshpass -p s3cret ssh me@x", f"sshpass -p {MASK} ssh me@x"),
        ("sshpass -ps3cret ssh -p 2222 me@x", f"sshpass -p{MASK} ssh -p 2222 me@x"),
        ("redis-cli -h x -a topsecret ping", f"redis-cli -h x -a {MASK} ping"),
        ("mongosh -u me -p topsecret", f"mongosh -u me -p {MASK}"),
        ("docker login -u me -p topsecret", f"docker login -u me -p {MASK}"),
        ("ldapsearch -D cn=me -w topsecret", f"ldapsearch -D cn=me -w {MASK}"),
    ],
)
def test_a_password_of_a_command_is_masked(text: str, shown: str) -> None:
    assert shown == mask_text(text)
    assert {"command": shown} == mask_value({"command": text})


@pytest.mark.parametrize(
    "text",
    [
        "mysql -p db",
        "mysql -p$PASSWORD db",
        "mysql -p'$PASSWORD' db",
        "mysql -p<password> db",
        "mysql -P3306 -uroot",
        "the mysql client asks with -p/--password",
        "docker run --name mysql -p3306:3306 -p 8080:80 mysql:8",
        "docker run -p 27017:27017 mongo -p",
        "MySQL 5.7 -pre-release",
        "mymysql -pword",
        "redis-cli -a option",
        "mysql starts\nmkdir -pv /x",
        "mkdir -pv mysql",
        "cp -p mongo.conf /etc",
        "ldapsearch -w $SECRET",
    ],
)
def test_what_is_no_password_of_a_command_is_left_alone(text: str) -> None:
    assert text == mask_text(text)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["mysql", "-uroot", "-phunter2", "db"], ["mysql", "-uroot", MASK, "db"]),
        (["/usr/bin/mysqldump", "-p", "db"], ["/usr/bin/mysqldump", "-p", "db"]),
        (["redis-cli", "-a", "x", "get"], ["redis-cli", "-a", MASK, "get"]),
        (["sh", "-c", "mysql -phunter2"], ["sh", "-c", f"mysql -p{MASK}"]),
        (["mkdir", "-pv", "mysql"], ["mkdir", "-pv", "mysql"]),
        (["mysql"], ["mysql"]),
        ([3, "-px"], [3, "-px"]),
    ],
)
def test_a_password_among_the_words_of_a_command_is_masked(words: list[object], shown: list[object]) -> None:
    assert shown == mask_value(words)
