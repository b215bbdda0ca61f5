"""Checkpoints join the mind with the world: the commit, and what changed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from incarnate.supervision.world import NoWorld, Repository


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "kept").write_text("1", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_what_changed_before_the_first_look_is_nobodys_effect(folder: Path) -> None:
    (folder / "old").write_text("x", encoding="utf-8")
    look = Repository(folder).look()

    assert git(folder, "rev-parse", "HEAD") == look.commit_sha
    assert () == look.effects


def test_each_file_that_changed_is_an_effect_once(folder: Path) -> None:
    world = Repository(folder)
    (folder / "new\u2028 name").write_text("123", encoding="utf-8")
    (folder / "kept").unlink()
    first, second = world.look(), world.look()

    assert {("new\u2028 name", "??", 3), ("kept", "D", 0)} == {
        (effect.id, effect.detail["status"], effect.detail["size"]) for effect in first.effects
    }
    assert () == second.effects


def told_by(world: Repository) -> list[tuple[object, object]]:
    return [(effect.id, effect.detail["status"]) for effect in world.look().effects if effect.kind == "file"]


def test_what_git_says_nothing_of_any_more_is_an_effect_too(folder: Path) -> None:
    """No commit brings back an untracked file that a tool removed."""
    (folder / "mine \udcff").write_text("never committed", encoding="utf-8")
    (folder / "kept").write_text("2", encoding="utf-8")
    world = Repository(folder)
    (folder / "mine \udcff").unlink()
    git(folder, "checkout", "-q", "--", "kept")

    assert [("kept", "clean"), ("mine \ufffd", "D")] == sorted(told_by(world))
    assert [] == told_by(world)


def test_what_is_committed_is_told_by_the_commit_alone(folder: Path) -> None:
    (folder / "new").touch()
    (folder / "kept").unlink()
    world = Repository(folder)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "second")

    assert [] == told_by(world)


def test_a_file_that_has_another_name_is_away_under_its_old_one(folder: Path) -> None:
    world = Repository(folder)
    git(folder, "mv", "kept", "named")

    assert [("kept", "D"), ("named", "R")] == sorted(told_by(world))


def test_a_commit_is_an_effect_that_names_the_one_before(folder: Path) -> None:
    world, before = Repository(folder), git(folder, "rev-parse", "HEAD")
    git(folder, "commit", "-q", "--allow-empty", "-m", "second")
    look = world.look()

    assert [("git-commit", look.commit_sha, {"after": before})] == [
        (effect.kind, effect.id, effect.detail) for effect in look.effects
    ]


def test_a_build_that_leaves_thousands_of_files_does_not_fill_the_ledger(folder: Path) -> None:
    world = Repository(folder)
    for number in range(300):
        (folder / f"out-{number}").touch()
    effects = world.look().effects

    assert 201 == len(effects)
    assert {"count": 100} == effects[-1].detail


def test_a_world_that_cannot_be_seen_has_no_commit(tmp_path: Path) -> None:
    assert ("-", ()) == Repository(tmp_path / "gone").look()
    assert ("-", ()) == NoWorld().look()


GIT = """#!/bin/sh
echo "$4" >> {asked}
[ "$4" != {hangs} ] || exec sleep 50
exec {git} "$@"
"""


@pytest.mark.parametrize(("hangs", "commits"), [("status", "known"), ("rev-parse", "unknown")])
def test_a_git_that_hangs_is_not_asked_again_at_each_boundary(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, hangs: str, commits: str
) -> None:
    world, head = Repository(folder), git(folder, "rev-parse", "HEAD")
    programs = tmp_path_factory.mktemp("bin")
    script = GIT.format(asked=programs / "asked", hangs=hangs, git=shutil.which("git"))
    (programs / "git").write_text(script, encoding="utf-8")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr("incarnate.supervision.world._SECONDS", 2.0)
    (folder / "new").touch()
    looks = [world.look() for _ in range(4)]

    assert 1 == (programs / "asked").read_text(encoding="utf-8").split().count(hangs)
    assert [head if commits == "known" else "-"] * 4 == [look.commit_sha for look in looks]


def test_a_repository_that_is_away_for_a_while_has_not_changed_all_its_files(folder: Path) -> None:
    (folder / "before").touch()
    world = Repository(folder)
    (folder / ".git").rename(folder / "moved")
    away = world.look()
    (folder / "moved").rename(folder / ".git")

    assert ("-", ()) == away
    assert () == world.look().effects


def test_a_folder_in_a_repository_has_the_changes_of_the_whole_tree_each_with_its_size(folder: Path) -> None:
    (folder / "part").mkdir()
    world = Repository(folder / "part")
    told: list[tuple[object, object]] = []
    for text in ("12", "123456"):
        for file in (folder / "kept", folder / "part" / "new", folder / "part" / "of no letters \udcff"):
            file.write_text(text, encoding="utf-8")
        told += [(effect.id, effect.detail["size"]) for effect in world.look().effects]

    names = ["kept", "part/new", "part/of no letters \ufffd"]
    assert [(name, size) for size in (2, 6) for name in names] == told
