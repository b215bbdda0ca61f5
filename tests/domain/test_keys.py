"""Activation keys: what names one, and that no two share a string."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate import ActivationKey, KeyFormatError

parts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
pairs = st.tuples(parts, parts)


@given(pairs)
def test_parse_undoes_str(pair: tuple[str, str]) -> None:
    key = ActivationKey(*pair)

    assert key == ActivationKey.parse(str(key))


@given(pairs, pairs)
def test_no_two_keys_share_a_string(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (one == other) == (str(ActivationKey(*one)) == str(ActivationKey(*other)))


def test_a_plain_key_reads_as_its_two_parts() -> None:
    assert str(ActivationKey("pik-1", "implement-task")) == "pik-1/implement-task"


def test_a_slash_and_a_percent_inside_a_part_are_escaped() -> None:
    assert str(ActivationKey("a/b", "50%")) == "a%2Fb/50%25"


@pytest.mark.parametrize(
    "text",
    ["", "/", "a", "a/", "/b", "a/b/c", "a%/b", "a%2f/b", "a%00/b", "a%41/b", "a/b\0", "a/\ud800", "a" * 1025 + "/b"],
)
def test_text_that_no_key_prints_is_refused(text: str) -> None:
    with pytest.raises(KeyFormatError):
        ActivationKey.parse(text)


@pytest.mark.parametrize("part", ["", "a\0b", "\ud800", "é" * 513, 5, None, b"x"])
def test_a_bad_part_is_refused_at_the_door(part: object) -> None:
    with pytest.raises(KeyFormatError):
        ActivationKey(part, "task")  # type: ignore[arg-type]
    with pytest.raises(KeyFormatError):
        ActivationKey("pik", part)  # type: ignore[arg-type]


def test_the_refusal_is_a_value_error_and_says_how_to_write_a_key() -> None:
    with pytest.raises(ValueError, match="exactly one /") as refused:
        ActivationKey.parse("a/b/c")

    assert isinstance(refused.value, KeyFormatError)
    assert "%2F" in refused.value.hint
