import pytest

from incarnate.domain.dialects.base import Capabilities
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.errors import DialectError


def test_a_dialect_is_found_under_its_own_name() -> None:
    assert list(DIALECTS) == [find_dialect(name).name for name in DIALECTS]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DialectError, match="known are @github/copilot, claude-code"):
        find_dialect("claude")


def test_a_resume_is_durable_only_with_streaming_and_an_id() -> None:
    kinds = [Capabilities(streaming, by_id) for streaming in (False, True) for by_id in (False, True)]
    assert [False, False, False, True] == [kind.durable_resume for kind in kinds]


def test_the_resume_command_keeps_the_session_id_in_one_argument() -> None:
    command = find_dialect("claude-code").resume_command("-x y", "go on")
    expected = ("claude", "-p", "go on", "--resume=-x y", "--output-format", "stream-json", "--verbose")
    assert expected == command


def test_without_a_prompt_the_command_asks_for_none() -> None:
    assert ("copilot", "--resume=s") == find_dialect("@github/copilot").resume_command("s")


def test_the_session_is_named_by_either_form() -> None:
    claude = find_dialect("claude-code")
    assert ["a", "b", None] == [claude.session_id(r) for r in ({"session_id": "a"}, {"sessionId": "b"}, 3)]


def test_a_record_is_named_by_its_uuid() -> None:
    claude = find_dialect("claude-code")
    records: list[object] = [{"uuid": "u"}, {"type": "mode"}, []]
    assert ["u", None, None] == [claude.record_id(record) for record in records]
