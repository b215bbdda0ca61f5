"""Who may ask: the host that a request names, the token, where it comes from, and how often."""

from __future__ import annotations

import hmac
import ipaddress
import time
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

from incarnate.studio.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = ["LOOPBACK_NAMES", "Bucket", "Guard"]

LOOPBACK_NAMES = frozenset({"localhost", "localhost."})
_REQUESTS = (400.0, 100.0)
_SIGN_INS = (10.0, 0.5)
"""So many at once, and so many a second: a token of 128 bits is safe from guessing, one that a person chose may not."""


class Bucket:
    """Lets `burst` through at once, and `rate` a second on the whole."""

    def __init__(self, burst: float, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._rate = rate
        self._clock = clock
        self._left = burst
        self._seen = clock()

    def take(self) -> bool:
        """Whether one more may pass."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._seen) * self._rate)
        self._seen = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Guard:
    """What a request must show before anything is read for it.

    Args:
        names: the host names that the server is reached by, beside `localhost` and addresses in numbers. Any other
            name may lead here by a DNS answer that somebody else made: then a page of theirs could read ours.
        token: what must be shown; None: nothing, which only a server on a loopback address allows itself.
        cookie: the name of the cookie. Cookies of one host go to all of its ports, so it tells the port.
        requests: how many may come; some hundreds at once, and a hundred a second, unless told otherwise.
    """

    def __init__(
        self,
        names: Collection[str] = (),
        token: str | None = None,
        cookie: str = "incarnate-studio",
        requests: Bucket | None = None,
    ) -> None:
        if token == "":
            raise ValueError("an empty token keeps nobody out")
        self._names = LOOPBACK_NAMES | {name.lower() for name in names}
        self._token = token
        self.cookie = cookie
        self._requests = requests or Bucket(*_REQUESTS)
        self._sign_ins = Bucket(*_SIGN_INS)

    @property
    def has_token(self) -> bool:
        """Whether one must sign in."""
        return self._token is not None

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Refuse a request by another name.

        Raises:
            Problem: it names no host, or one that is not ours.
        """
        host = _host(headers.get("host", ""))
        if host.lower() not in self._names and not _is_address(host):
            raise Problem(
                403,
                "unknown-host",
                "the request names a host that this server is not",
                "use the address that the command printed",
            )

    def check_api(self, headers: Mapping[str, str]) -> None:
        """Refuse a request that may not read, or comes from another site's page.

        Raises:
            Problem: as it says.
        """
        _check_site(headers)
        if not self._requests.take():
            raise Problem(429, "too-many-requests", "too many requests at once", "ask more slowly")
        if self._token is not None and not self._is_signed_in(self._token, headers):
            raise Problem(
                401, "signed-out", "a token is needed", "POST it to /api/sign-in, or send it as a bearer token"
            )

    def sign_in(self, headers: Mapping[str, str], token: str) -> str:
        """What to set as the cookie of who shows `token`. It is not the token, and does not tell it.

        Raises:
            Problem: the token is wrong, or was tried too often.
        """
        _check_site(headers)
        if not self._sign_ins.take():
            raise Problem(429, "too-many-requests", "the token was tried too often", "wait some seconds")
        if self._token is not None and not _same(token, self._token):
            raise Problem(401, "wrong-token", "the token is wrong", "the command printed it as it began")
        return _session(self._token or "")

    def _is_signed_in(self, token: str, headers: Mapping[str, str]) -> bool:
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return _same(shown.strip(), token)
        return _same(_cookie(headers.get("cookie", ""), self.cookie), _session(token))


def _check_site(headers: Mapping[str, str]) -> None:
    origin = headers.get("origin")
    ours = origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
    if not ours or headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
        raise Problem(403, "other-site", "the request comes from another site's page", "open the studio's own address")


def _same(shown: str, token: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "surrogateescape"), token.encode())


def _session(token: str) -> str:
    return hmac.new(token.encode(), b"incarnate studio: signed in", "sha256").hexdigest()


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _host(header: str) -> str:
    """The host of `name:port`, without the brackets of an address."""
    if header.startswith("["):
        address, closed, _ = header[1:].partition("]")
        return address if closed else ""
    name, colon, port = header.rpartition(":")
    return name if colon and port.isdigit() else header


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
