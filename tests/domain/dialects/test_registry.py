import pytest

from incarnate.domain.dialects.base import Capabilities
from incarnate.domain.dialects.registry import DIALECTS, find_dialect
from incarnate.domain.errors import DialectError


def test_a_dialect_is_found_under_its_own_name() -> None:
    assert list(DIALECTS) == [find_dialect(name).name for name in DIALECTS]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DialectError, match=f"known are {', '.join(sorted(DIALECTS))}"):
        find_dialect("claude")


def test_a_resume_is_durable_only_with_streaming_and_an_id() -> None:
    kinds = [Capabilities(streaming, by_id) for streaming in (False, True) for by_id in (False, True)]
    assert [False, False, False, True] == [kind.durable_resume for kind in kinds]


@pytest.mark.parametrize(
    ("harness", "expected"),
    [
        ("claude-code", ["claude", "-p", "go on", "--resume=-x y", "--output-format", "stream-json", "--verbose"]),
        ("@github/copilot", ["copilot", "-p", "go on", "--output-format", "json", "--resume=-x y"]),
        ("qwen-code", ["qwen", "-o", "stream-json", "-p", "go on", "--resume=-x y"]),
        ("gemini-cli", ["gemini", "-o", "stream-json", "-p", "go on", "--resume=-x y"]),
        ("kimi", ["kimi", "--print", "--output-format", "stream-json", "-p", "go on", "--session=-x y"]),
        ("pi", ["pi", "--mode", "json", "--session", "-x y", "go on"]),
    ],
)
def test_the_resume_command_keeps_session_id_and_prompt_each_in_one_argument(harness: str, expected: list[str]) -> None:
    assert expected == list(find_dialect(harness).resume_command("-x y", "go on") or ())


@pytest.mark.parametrize(
    ("harness", "expected"),
    [
        ("@github/copilot", ("copilot", "--resume=s")),
        ("qwen-code", ("qwen", "--resume=s")),
        ("gemini-cli", ("gemini", "--resume=s")),
        ("kimi", ("kimi", "--session=s")),
        ("pi", ("pi", "--session", "s")),
    ],
)
def test_without_a_prompt_the_command_asks_for_none(harness: str, expected: tuple[str, ...]) -> None:
    assert expected == find_dialect(harness).resume_command("s")


def test_a_session_of_kimi_code_is_resumed_by_its_own_program() -> None:
    expected = ("kimi", "--output-format", "stream-json", "-p", "go on", "--session=session_1")
    assert expected == find_dialect("kimi").resume_command("session_1", "go on")


def test_gemini_is_told_the_session_to_resume() -> None:
    assert ("--resume", "s") == find_dialect("gemini-cli").resume("s").args


def test_a_harness_without_a_command_line_has_no_resume_command() -> None:
    assert find_dialect("deepseek").resume_command("s", "go on") is None


def test_the_session_is_named_by_either_form() -> None:
    claude = find_dialect("claude-code")
    assert ["a", "b", None] == [claude.session_id(r) for r in ({"session_id": "a"}, {"sessionId": "b"}, 3)]


def test_a_record_is_named_by_its_uuid() -> None:
    claude = find_dialect("claude-code")
    records: list[object] = [{"uuid": "u"}, {"type": "mode"}, []]
    assert ["u", None, None] == [claude.record_id(record) for record in records]
