"""The contract kit itself: what it tells, and that no planted fault gets past the sentences of its invariant."""

import subprocess
import sys
from pathlib import Path

import pytest

from incarnate.storage.contract import Capability, StoreContract
from tests.support.broken_stores import BROKEN, RoomStore

pytest_plugins = ["pytester"]

PLAYED = """
from incarnate.storage.contract import StoreContract
from tests.support import broken_stores

class TestRoom(StoreContract):
    lacks = {lacks!r}

    def open_store(self, folder):
        return broken_stores.{store}(folder)
"""


def run(pytester: pytest.Pytester, store: str, lacks: tuple[str, ...], *arguments: str) -> pytest.RunResult:
    """Hold one store of a third party to the contract."""
    pytester.makepyfile(PLAYED.format(store=store, lacks=lacks))
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "--import-mode=importlib", *arguments)


def test_a_third_partys_store_passes_without_what_it_lacks(pytester: pytest.Pytester) -> None:
    result = run(pytester, "RoomStore", ("processes", "read-only"), "-W", "error", "--disable-plugin-autoload")

    assert set(result.parseoutcomes()) == {"passed"}
    result.stdout.re_match_lines(
        [
            "=+ incarnate store contract =+",
            " +durable  shared  processes  archives  forks  retirement  sweeps  read-only  vectors  sentences",
            r"TestRoom  yes +yes +- +yes +yes +yes +yes +- +- +\d+, 8 exempted",
        ],
        consecutive=True,
    )


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_store_that_breaks_a_promise_fails_its_sentences(pytester: pytest.Pytester, broken: type[RoomStore]) -> None:
    result = run(pytester, broken.__name__, ("processes", "read-only"), "-k", BROKEN[broken], "-x")

    result.assert_outcomes(failed=1, passed=result.parseoutcomes().get("passed", 0), deselected=deselected(result))


def deselected(result: pytest.RunResult) -> int:
    return result.parseoutcomes().get("deselected", 0)


def test_a_failure_tells_both_sides_and_which_flag_would_exempt_the_store(pytester: pytest.Pytester) -> None:
    result = run(pytester, "ForgetsArchives", ("processes", "read-only"), "-k", "archive_is_read_in_pages")

    result.stdout.fnmatch_lines(
        [
            "E*assert ?'c', 'd'? == ??*",
            'E*A store that is not meant to do this is exempted by: lacks = ("archives",)',
        ]
    )


def test_a_store_without_a_url_is_told_what_to_write(pytester: pytest.Pytester) -> None:
    result = run(pytester, "RoomStore", ("read-only",), "-k", "killed_process")

    result.stdout.fnmatch_lines(
        [
            "E*NotImplementedError: TestRoom needs store_url, or open_store and a `lacks` that names what needs a URL",
            'E*exempted by: lacks = ("processes", "durable",)',
        ]
    )


def test_a_capability_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="Mine lacks 'fork': the capabilities are durable, shared, processes, archives"):
        type("Mine", (StoreContract,), {"lacks": "fork"})


def test_what_a_class_is_exempted_from_its_heir_need_not_be() -> None:
    class Exempted(StoreContract):
        lacks = tuple(Capability)

    class Heir(Exempted):
        lacks = ()

    names = {name for name in dir(StoreContract) if name.startswith("test_")}

    assert {name for name in names if getattr(Exempted, name) is None} == {*Exempted.exempted}
    assert [*Heir.exempted] == [*StoreContract.exempted]
    assert {name for name in names if not callable(getattr(Heir, name))} == {*StoreContract.exempted}


def test_each_sentence_that_needs_a_capability_is_named_by_one_class_alone() -> None:
    twice = [
        name
        for name in dir(StoreContract)
        if name.startswith("test_") and sum(name in vars(base) for base in StoreContract.__mro__[1:]) > 1
    ]

    assert [] == twice


def test_without_pytest_the_kit_says_what_to_install() -> None:
    code = "import sys; sys.modules['pytest'] = None; import incarnate, incarnate.storage.contract"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path("/"))

    assert (
        "MissingExtraError: incarnate.storage.contract needs the extra 'test', which is not installed" in failed.stderr
    )
    assert 'Try: pip install "incarnate[test]"' in failed.stderr
