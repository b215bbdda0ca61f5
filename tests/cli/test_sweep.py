"""`incarnate sweep` of some keys, and what its dry run foretells."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from incarnate.actors.system import SessionSystem
from incarnate.domain.events import AssistantMessage
from incarnate.domain.keys import ActivationKey
from tests.support.commands import run
from tests.support.stores import jsonl_url, sqlite_url

DAY = 86_400_000
LIVE, RETIRED, GONE, YOUNG = (ActivationKey("pik", name) for name in ("live", "retired", "swept", "young"))
SWEEP = ("sweep", "--older-than", "30d")


@pytest.fixture(params=[sqlite_url, jsonl_url])
def filled(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with one of each: rewound, retired and rewound, retired and swept before, and too young."""
    make: Callable[[Path], str] = request.param
    url = make(tmp_path)
    monkeypatch.setenv("INCARNATE_STORE", url)
    with SessionSystem.open(url, clock=lambda: DAY) as system:
        for key in (LIVE, RETIRED, GONE):
            fill(system, key)
        system.retire(GONE)
        system.sweep(timedelta(seconds=-1), [GONE])
        system.retire(RETIRED)
    with SessionSystem.open(url) as system:
        fill(system, YOUNG)
        fill(system, LIVE)  # rewound again, today
    return url


def fill(system: SessionSystem, key: ActivationKey) -> None:
    """Three events below a checkpoint, and two that a rewind superseded."""
    session = system.claim(key)
    session.emit_many([note(system) for _ in range(3)])
    session.checkpoint("sha")
    session.emit_many([note(system) for _ in range(2)])
    session.restore()
    session.emit(note(system))


def note(system: SessionSystem) -> AssistantMessage:
    return AssistantMessage(id=system._new_id(), parent_id=None, text="x")  # noqa: SLF001 - any id that is new


def kept(url: str) -> dict[str, tuple[int, list[int]]]:
    """Of each key, how many events can be read, and how many that each rewind superseded."""
    with SessionSystem.open(url, read_only=True) as system:
        return {
            str(info.key): (
                len(list(system.replay(info.key))),
                [
                    len(list(system.replay_superseded(info.key, rewind.generation)))
                    for rewind in system.rewinds(info.key)
                ],
            )
            for info in system.activations()
        }


def counts(told: dict[str, Any]) -> dict[str, int]:
    return {name: told[name] for name in ("activations", "rewinds", "events")}


@pytest.mark.parametrize("keys", [(), (LIVE,), (RETIRED,), (YOUNG, GONE), (RETIRED, LIVE, RETIRED)], ids=str)
def test_a_sweep_does_what_its_dry_run_foretells(filled: str, keys: tuple[ActivationKey, ...]) -> None:
    before = kept(filled)
    foretold = json.loads(run(*SWEEP, *keys, "--dry-run", "--json").stdout)
    still = kept(filled)
    swept = json.loads(run(*SWEEP, *keys, "--json").stdout)
    after = kept(filled)
    named = {one["key"]: one for one in foretold["each"]}
    changed = {key for key in before if before[key] != after.get(key)}
    lost = sum(total(before[key]) - total(after.get(key, (0, []))) for key in before)

    assert before == still
    assert (True, swept) == (foretold["dryRun"], counts(foretold))
    assert (changed, lost) == (set(named), swept["events"])
    assert {key for key in before if key not in after} == {key for key, one in named.items() if one["activations"]}
    assert [] == json.loads(run(*SWEEP, *keys, "-n", "--json").stdout)["each"]


def total(of_one: tuple[int, list[int]]) -> int:
    return of_one[0] + sum(of_one[1])


def test_a_dry_run_tells_each_key_and_all(filled: str) -> None:
    result = run(*SWEEP, "-n", "--vacuum")

    assert 0 == result.exit_code
    assert (
        f"{LIVE}: 0 retired activations and the archives of 1 rewind: 2 events\n"
        f"{RETIRED}: 1 retired activation and the archives of 1 rewind: 6 events\n"
        "would remove 1 retired activation and the archives of 2 rewinds: 8 events\n"
    ) == result.stdout
    assert result.stdout.splitlines()[-1].removeprefix("would remove ") in run(*SWEEP).stdout
    assert "would remove 0 retired activations and the archives of 0 rewinds: 0 events\n" == run(*SWEEP, "-n").stdout
    assert filled


def test_a_sweep_of_a_key_leaves_the_others(filled: str) -> None:
    before = kept(filled)
    result = run(*SWEEP, RETIRED)

    assert "removed 1 retired activation and the archives of 1 rewind: 6 events\n" == result.stdout
    assert {key: held for key, held in before.items() if key != str(RETIRED)} == kept(filled)


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_a_key_that_is_not_there_is_refused_before_anything_is_removed(filled: str, flags: tuple[str, ...]) -> None:
    before = kept(filled)
    result = run(*SWEEP, RETIRED, "pik/livee", *flags)

    assert (1, "") == (result.exit_code, result.stdout)
    assert f"Error: {filled} holds no activation pik/livee\nTry: did you mean {LIVE}? incarnate ls " in result.stderr
    assert before == kept(filled)


def test_a_dry_run_opens_the_store_to_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[bool] = []
    monkeypatch.setenv("INCARNATE_STORE", sqlite_url(tmp_path))
    with SessionSystem.open(sqlite_url(tmp_path)) as system:
        fill(system, LIVE)
    real = SessionSystem.open

    def watched(url: str, *, read_only: bool = False) -> SessionSystem:
        opened.append(read_only)
        return real(url, read_only=read_only)

    monkeypatch.setattr(SessionSystem, "open", watched)
    assert 0 == run("sweep", "--older-than", "0s", "-n").exit_code
    assert [True] == opened


def test_no_dry_run_makes_a_store(data_folder: Path) -> None:
    result = run(*SWEEP, "--dry-run")

    assert 1 == result.exit_code
    assert f"Error: there is no store yet at {data_folder}/incarnate/sessions.db" in result.stderr
    assert not data_folder.exists()
