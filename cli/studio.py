"""`incarnate studio`: a page where people watch the sessions of a store live."""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from contextlib import closing, suppress
from importlib import import_module
from typing import TYPE_CHECKING

import click

from incarnate.cli.addresses import address_of, at_fault, is_loopback, reached_at
from incarnate.cli.errors import Failure, UsageFailure
from incarnate.cli.numbers import whole
from incarnate.cli.options import json_option, open_system, store_option
from incarnate.cli.text import make_console, say, write_json
from incarnate.domain.errors import MissingExtraError
from incarnate.supervision.registry import Registry, state_folder

if TYPE_CHECKING:
    from collections.abc import Collection

    from incarnate.studio.archive import Archive

__all__ = ["studio"]

_TOKEN_BYTES = 24
_LEAST_TOKEN = 12
"""Letters of a token that strangers may try: each network has a try in two seconds, and short words are few."""


@click.command()
@store_option
@click.option("--host", metavar="HOST", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=whole(0, 65535), default=0, help="The port; a free one unless given.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="INCARNATE_STUDIO_TOKEN",
    show_envvar=True,
    help="What people must show to sign in; one is made where HOST is no loopback address. In the environment it is "
    "in no list of processes.",
)
@click.option("--mask/--no-mask", default=True, help="Show API keys and tokens masked, or as they are.")
@json_option
def studio(
    store: str | None, host: str, port: int, token: str | None, *, opens: bool, mask: bool, as_json: bool
) -> None:
    """Serve a page where sessions are watched live.

    It does so until Ctrl-C. It reads only: it takes no lease and changes nothing. It listens on this machine alone
    unless --host says otherwise, and then asks whoever comes for a token.
    """
    if token is not None and not token.strip():
        raise UsageFailure("the token is empty", "give none, and one is made where it is needed")
    if token is not None and len(token) < _LEAST_TOKEN and not is_loopback(host):
        raise UsageFailure(
            f"the token has {len(token)} letters; others reach {host}, and {_LEAST_TOKEN} are the least",
            "give a longer one, or none, and one is made",
        )
    _check_extra()
    from incarnate.studio.archive import Archive  # noqa: PLC0415 - studio is loaded once its extra is known to be there
    from incarnate.studio.server import listening  # noqa: PLC0415

    with open_system(store) as system:
        url = system.url
    made = token is None and not is_loopback(host)
    if made:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
    try:
        listener = listening(host, port)
    except OSError as error:
        told = f"cannot listen at {host} port {port}: {error.strerror or error}"
        raise Failure(told, f"choose another {at_fault(error)}") from error
    with listener, closing(Archive(store or url, mask=mask)) as archive:  # what a store tells of itself has no password
        address = address_of(reached_at(host), listener.getsockname()[1])
        if as_json:
            write_json({"url": address, "store": url, "token": token if made else None})
        else:
            _tell(address, url, token if made else None)
        sys.stdout.flush()  # whoever started this in a pipe waits for it
        if opens:
            webbrowser.open(address)
        _serve(archive, listener, {host, socket.gethostname()}, token)


def _check_extra() -> None:
    for name in ("starlette", "uvicorn"):
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            raise MissingExtraError("studio", "incarnate studio") from error


def _serve(archive: Archive, listener: socket.socket, names: Collection[str], token: str | None) -> None:
    from incarnate.studio.app import Studio  # noqa: PLC0415 - as above
    from incarnate.studio.guard import Guard  # noqa: PLC0415
    from incarnate.studio.listing import Listing  # noqa: PLC0415
    from incarnate.studio.server import Server  # noqa: PLC0415

    store = archive.store.url
    guard = Guard(names, token, f"incarnate-studio-{listener.getsockname()[1]}")
    with closing(Listing(archive, lambda: _supervised(store))) as listing, suppress(KeyboardInterrupt):
        Server(Studio(archive, listing, guard), listener).serve_until_told()


def _tell(address: str, url: str, token: str | None) -> None:
    say(make_console(), address)
    console = make_console(stderr=True)
    say(console, f"studio of {url}, until Ctrl-C")
    if token is not None:
        say(console, f"token: {token}")


def _supervised(url: str) -> Collection[str]:
    """The keys of the supervisors of this store that live."""
    return {found.record.key for found in Registry(state_folder()).live() if found.record.store == url}
