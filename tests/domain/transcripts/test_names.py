import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.transcripts.names import file_name, legacy_file_name
from incarnate.domain.transcripts.vectors import file_name_answer

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"


@pytest.mark.smoke
def test_the_legacy_name_is_the_recorded_one() -> None:
    expected = [json.loads(line) for line in (VECTORS / "file_names.jsonl").read_bytes().split(b"\n") if line]

    assert expected == [file_name_answer(vector) for vector in expected]


@pytest.mark.parametrize("id", ["a", "ok-1._", "x" * 40, "x" * 249, "session", "0198c5b2-7e1f-7000-8000-0123456789ab"])
def test_an_id_that_can_be_a_name_stays_one(id: str) -> None:
    assert legacy_file_name(id) == file_name(id)


@pytest.mark.parametrize(
    ("one", "other"),
    [("", "session"), ("a/b", "a_b"), ("a b", "a/b"), ("A", "a"), ("\u00e9", "e\u0301"), ("x" * 250, "x" * 251)],
)
def test_two_ids_never_share_a_file_even_where_case_does_not_count(one: str, other: str) -> None:
    assert file_name(one).lower() != file_name(other).lower()


def test_no_id_can_take_the_name_that_another_has_for_its_hash() -> None:
    name = file_name("a b")

    assert name != file_name(name.removesuffix(".jsonl"))


@pytest.mark.parametrize("id", ["con", "NUL", "aux.txt", "com1", "lpt9.log.1", "x" * 250, "\U0001f44b" * 300, "\udc80"])
def test_a_name_is_no_device_and_not_too_long(id: str) -> None:
    name = file_name(id)

    assert name.partition(".")[0].lower() not in {"con", "nul", "aux", "com1", "lpt9"}
    assert len(name.encode()) <= 255


@given(st.text(st.characters(categories=["Cs", "Lu", "Ll", "Nd", "Po", "Cc"]), max_size=300))
def test_any_id_becomes_a_safe_name(id: str) -> None:
    name = file_name(id)

    assert name.isascii()
    assert set('/\\\0:*?"<>|\n ').isdisjoint(name)
    assert len(name) <= 255
