"""Where a server listens, and by what address people reach it."""

from __future__ import annotations

import socket
from contextlib import suppress
from errno import EACCES, EADDRINUSE
from ipaddress import ip_address

__all__ = ["address_of", "at_fault", "is_loopback", "reached_at"]

_FAR = {4: (socket.AF_INET, ("192.0.2.1", 9)), 6: (socket.AF_INET6, ("2001:db8::1", 9))}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def at_fault(error: OSError) -> str:
    """Which option to change where a server cannot listen."""
    is_port = error.errno in {EADDRINUSE, EACCES}
    return "--port" if is_port else "--host: a name or an address of this machine"


def reached_at(host: str) -> str:
    """Where people find a server that listens at `host`, which may mean every address of this machine."""
    with suppress(ValueError, OSError):
        address = ip_address(host)
        if address.is_unspecified:
            family, far = _FAR[address.version]
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(far)  # nothing is sent: it tells the address of the way out
                return str(probe.getsockname()[0])
    return host


def address_of(host: str, port: int) -> str:
    """What to write into a browser."""
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
