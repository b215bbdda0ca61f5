"""`incarnate studio`: a page where people watch the sessions of a store live."""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from ipaddress import ip_address
from typing import TYPE_CHECKING

import click

from incarnate.cli.errors import Failure
from incarnate.cli.options import open_system, store_option
from incarnate.cli.text import make_console, say
from incarnate.domain.errors import MissingExtraError
from incarnate.supervision.registry import Registry, state_folder

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["studio"]

_TOKEN_BYTES = 24


@click.command()
@store_option
@click.option("--host", metavar="HOST", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; a free one unless given.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="INCARNATE_STUDIO_TOKEN",
    show_envvar=True,
    help="What people must show to sign in; one is made where HOST is no loopback address.",
)
@click.option("--mask/--no-mask", default=True, help="Show API keys and tokens masked, or as they are.")
def studio(store: str | None, host: str, port: int, token: str | None, *, opens: bool, mask: bool) -> None:
    """Serve a page where the sessions of the store can be watched live, until Ctrl-C.

    It reads only: it takes no lease and changes nothing. It listens on this machine alone unless --host says
    otherwise, and then asks whoever comes for a token.
    """
    try:
        from incarnate.studio.app import Studio  # noqa: PLC0415 - so that the extra's absence can be told
        from incarnate.studio.server import Server, listening  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"starlette", "uvicorn", "anyio"}:
            raise
        raise MissingExtraError("studio", "incarnate studio") from error
    from incarnate.studio.archive import Archive  # noqa: PLC0415
    from incarnate.studio.guard import Guard  # noqa: PLC0415
    from incarnate.studio.listing import Listing  # noqa: PLC0415

    with open_system(store) as system:
        url = system.url
    made = token is None and not _is_loopback(host)
    if made:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
    archive = Archive(url, mask=mask)
    try:
        listener = listening(host, port)
    except OSError as error:
        archive.close()
        raise Failure(
            f"cannot listen at {host} port {port}: {error.strerror or error}", "choose another --port"
        ) from error
    address = _address(host, listener.getsockname()[1])
    guard = Guard({host, socket.gethostname()}, token, f"incarnate-studio-{listener.getsockname()[1]}")
    listing = Listing(archive, lambda: _supervised(url))
    console = make_console(stderr=True)
    say(make_console(), address)
    sys.stdout.flush()  # whoever started this in a pipe waits for it
    say(console, f"studio of {url}, until Ctrl-C")
    if made:
        say(console, f"token: {token}")
    if opens:
        webbrowser.open(address)
    try:
        Server(Studio(archive, listing, guard), listener).serve_until_told()
    except KeyboardInterrupt:
        pass
    finally:
        listing.close()
        archive.close()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _supervised(url: str) -> Collection[str]:
    """The keys of the supervisors of this store that live."""
    return {found.record.key for found in Registry(state_folder()).live() if found.record.store == url}
