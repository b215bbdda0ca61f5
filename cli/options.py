"""What commands share: the key, the store, `--json`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from incarnate.actors.system import SessionSystem
from incarnate.cli.choices import nearest
from incarnate.cli.errors import Failure, UsageFailure
from incarnate.cli.unopened import ANOTHER_STORE, next_step
from incarnate.domain.commands import GetHead
from incarnate.domain.errors import IncarnateError, KeyFormatError, StoreFileError
from incarnate.domain.heads import EMPTY_HEAD, Head
from incarnate.domain.keys import ActivationKey
from incarnate.storage.homes import home_folder
from incarnate.storage.paths import as_written

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "KEY",
    "default_store_file",
    "json_option",
    "key_argument",
    "known_head",
    "open_system",
    "refuse_memory",
    "store_option",
    "store_url",
    "touched_head",
]

F = TypeVar("F", bound="Callable[..., Any]")

_MISSING = "incarnate ingest makes it; --store names another"
_FEW = 100


class _KeyType(click.ParamType[ActivationKey]):
    name = "KEY"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ActivationKey:  # noqa: ARG002 - click's signature
        try:
            return value if isinstance(value, ActivationKey) else ActivationKey.parse(value)
        except KeyFormatError as error:
            raise UsageFailure(str(error), error.hint) from error


KEY = _KeyType()


def key_argument(command: F) -> F:
    """The argument KEY, parsed."""
    return click.argument("key", type=KEY)(command)


def store_option(command: F) -> F:
    """The option `--store`, or None for the user's own store."""
    return click.option(
        "--store",
        metavar="URL",
        envvar="INCARNATE_STORE",
        show_envvar=True,
        help="The store, such as sqlite:///sessions.db; a file in the user's data folder unless given.",
    )(command)


def json_option(command: F) -> F:
    """The flag `--json`, as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def default_store_file() -> Path:
    """The user's own store."""
    if sys.platform == "darwin":
        folder = home_folder(os.environ) / "Library" / "Application Support"
    else:
        named = os.environ.get("XDG_DATA_HOME", "")
        # The specification has a relative one ignored.
        folder = Path(named) if Path(named).is_absolute() else home_folder(os.environ) / ".local" / "share"
    return folder / "incarnate" / "sessions.db"


def store_url(store: str | None, *, read_only: bool = True) -> str:
    """The URL of `store`, or of the user's own one, whose folder is made where it is to be written."""
    if store is None:
        return _own_store(read_only=read_only)
    refuse_memory(store)
    return store


def open_system(store: str | None, *, read_only: bool = True, missing: str = _MISSING) -> SessionSystem:
    """The system over `store`, or over the user's own one, which is made where it is to be written.

    `missing` is the next step where there is no such store to read.
    """
    url = store_url(store, read_only=read_only)
    try:
        return SessionSystem.open(url, read_only=read_only)
    except StoreFileError as error:
        raise Failure(str(error), next_step(error, missing, own=store is None)) from error


def refuse_memory(store: str) -> None:
    """Refuse a store that would be gone when the command ends."""
    if store.lower().startswith("memory://"):
        raise Failure(f"{store} would be gone when this command ends", "name a file, such as sqlite:///sessions.db")


def _own_store(*, read_only: bool) -> str:
    file = default_store_file()
    try:
        if not read_only:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not file.exists():
            raise Failure(f"there is no store yet at {file}", _MISSING)
    except OSError as error:
        raise Failure(f"{file.parent} cannot be made or entered ({error.strerror})", ANOTHER_STORE) from error
    return f"sqlite:///{as_written(str(file))}"


def known_head(system: SessionSystem, key: ActivationKey) -> Head:
    """The head of an activation that the store holds."""
    head = touched_head(system, key)
    # A swept key keeps its fence for ever, so that nobody takes it again; an empty log that was retired is listed.
    if head.retired and not head.next_offset and all(info.key != key for info in system.activations()):
        raise Failure(
            f"{system.url} holds no activation {key} any more: it was retired and swept",
            "incarnate ls lists what it holds",
        )
    return head


def touched_head(system: SessionSystem, key: ActivationKey) -> Head:
    """The head of an activation that the store knows, if only as swept."""
    head: Head = system.activation(key).ask(GetHead())
    if head == EMPTY_HEAD:
        meant = _meant(system, key)
        asked = "" if meant is None else f"did you mean {meant}? "
        raise Failure(f"{system.url} holds no activation {key}", f"{asked}incarnate ls lists what it holds")
    return head


def _meant(system: SessionSystem, key: ActivationKey) -> str | None:
    """The key that is most like `key`, in a store that is small enough to look through for it."""
    with suppress(IncarnateError):  # what is wrong with another log is not what was asked
        held = [str(info.key) for info in islice(system.activations(), _FEW + 1)]
        return nearest(str(key), held) if len(held) <= _FEW else None
    return None
