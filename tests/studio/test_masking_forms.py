"""Each form of the table is known by its example, wherever that stands, and what only begins like it is left alone."""

import json
import uuid

import pytest

from incarnate.studio.masking import MASK, mask_text
from incarnate.studio.secret_forms import FORMS, Form

BEFORE = ["", " ", '"', "=", "KEY_", r"\n", r"\t", r"\"", r"\\n", r"\u0022", r"\x1b[0m", "%22", "%3D", "\x1b[31m"]
SURE = [form for form in FORMS if form.service != "JSON web token"]


@pytest.mark.parametrize("form", FORMS, ids=[form.service for form in FORMS])
def test_an_example_is_masked_behind_whatever_may_stand_before_it(form: Form) -> None:
    for prefix in form.prefixes:
        for before in BEFORE:
            assert f"{before}{MASK} ." == mask_text(f"{before}{prefix}{form.example} .")


@pytest.mark.parametrize("form", FORMS, ids=[form.service for form in FORMS])
def test_what_only_begins_like_one_is_left_alone(form: Form) -> None:
    for prefix in form.prefixes:
        text = f"see {prefix}{form.other}."
        assert text == mask_text(text)


@pytest.mark.parametrize("form", SURE, ids=[form.service for form in SURE])
def test_an_example_is_masked_in_json_inside_json(form: Form) -> None:
    text = json.dumps(json.dumps({"env": ["A=1\n" + form.prefixes[0] + form.example]}))
    assert form.example not in mask_text(text)
    assert form.example not in mask_text(text[:-1]), "cut off, it is no JSON"


@pytest.mark.parametrize("text", ["xsk-" + "a1" * 20, "task-a1b2c3d4e5f6a7b8c9d0", "risk-" + "B2" * 16])
def test_what_a_word_goes_on_into_is_no_prefix(text: str) -> None:
    assert text == mask_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "3f786850e387550fdab836ed7e6dc881de23001b",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "sk-learn-is-a-library-for-python",
        "sk" + "-" * 40,
        str(uuid.UUID(int=2**127 - 1)),
        "git@github.com:org/repo.git",
        "hf_hub_download_something_something_xx",
        "asia-southeast1-docker.pkg.dev/project/images/service",
    ],
)
def test_what_is_long_and_no_secret_is_left_alone(text: str) -> None:
    assert text == mask_text(text)


def armoured(kind: str, end: str) -> str:
    lines = ["Proc-Type: 4,ENCRYPTED", "", *("MIIEpAIBAAKCAQEA" + "aB3d" * 12 for _ in range(20)), "aB3dE6g="]
    return end.join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("end", ["\n", "\r\n", r"\n", r"\\n", "\n    "])
def test_a_private_key_is_masked_over_its_lines(kind: str, end: str) -> None:
    assert f"before {MASK} after" == mask_text(f"before {armoured(kind, end)} after")


@pytest.mark.parametrize("end", ["\n", r"\n"])
def test_a_private_key_without_its_end_or_its_beginning_is_masked_as_far_as_it_goes(end: str) -> None:
    lines = armoured("PRIVATE KEY", end).split(end)
    for cut in (lines[:-2], lines[3:]):
        assert "aB3d" not in mask_text(f"some words{end}" + end.join(cut))
        assert mask_text(f"some words{end}" + end.join(cut)).startswith("some ")


def test_one_key_does_not_hide_what_stands_between_it_and_the_next() -> None:
    key = armoured("PRIVATE KEY", "\n")
    assert f"a {MASK} b {MASK} c" == mask_text(f"a {key} b {key} c")


def test_a_mention_of_an_armour_hides_no_more_than_itself() -> None:
    assert f"it begins with {MASK} and goes on" == mask_text("it begins with -----BEGIN PRIVATE KEY----- and goes on")
