"""Who may ask: the host that a request names, the token, where it comes from, and how often."""

from __future__ import annotations

import hmac
import ipaddress
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from incarnate.studio.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

__all__ = ["LOOPBACK_NAMES", "Bucket", "Guard"]

LOOPBACK_NAMES = frozenset({"localhost", "localhost."})
_REQUESTS = (400.0, 100.0)
_TRIES = (10.0, 0.5)
"""So many at once, and so many a second: a token of 128 bits is safe from guessing, one that a person chose may not."""

_FILES = (2000.0, 200.0)
"""A window loads some sixty and asks for none again that was refused; twenty windows may be opened at once."""

_MOST_CLIENTS = 4096


class Bucket:
    """Lets `burst` through at once, and `rate` a second on the whole."""

    def __init__(self, burst: float, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._rate = rate
        self._clock = clock
        self._left = burst
        self._seen = clock()

    def has_one(self) -> bool:
        """Whether one more may pass; it does not."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._seen) * self._rate)
        self._seen = now
        return self._left >= 1

    def take(self) -> bool:
        """Whether one more may pass."""
        if not self.has_one():
            return False
        self._left -= 1
        return True


class _EachClient:
    """A bucket for each client: one that guesses, or asks without end, keeps nobody else out."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def of(self, client: str) -> Bucket:
        network = _network(client)
        bucket = self._buckets.get(network)
        if bucket is None:
            bucket = self._buckets[network] = Bucket(self._burst, self._rate)
        self._buckets.move_to_end(network)
        while len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return bucket


def _network(client: str) -> str:
    """One machine has a whole /64 of IPv6 addresses."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client
    return client if address.version == 4 else str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))  # noqa: PLR2004


class Guard:
    """What a request must show before anything is read for it.

    Args:
        names: the host names that the server is reached by, beside `localhost` and addresses in numbers. Any other
            name may lead here by a DNS answer that somebody else made: then a page of theirs could read ours.
        token: what must be shown; None: nothing, which only a server on a loopback address allows itself.
        cookie: the name of the cookie. Cookies of one host go to all of its ports, so it tells the port.
        requests: how many may come of those who may ask; some hundreds at once, and a hundred a second, unless told
            otherwise. Who may not is answered without being counted: else strangers would keep the others out.
        files: how many files of the page each client may have, who may not ask included: so many at once, and so many
            a second.
    """

    def __init__(
        self,
        names: Collection[str] = (),
        token: str | None = None,
        cookie: str = "incarnate-studio",
        requests: Bucket | None = None,
        files: tuple[float, float] = _FILES,
    ) -> None:
        if token == "":
            raise ValueError("an empty token keeps nobody out")
        self._names = LOOPBACK_NAMES | {name.lower() for name in names}
        self._token = token
        self.cookie = cookie
        self._requests = requests or Bucket(*_REQUESTS)
        self._tries = _EachClient(*_TRIES)
        self._files = _EachClient(*files)

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

    @staticmethod
    def check_site(headers: Mapping[str, str]) -> None:
        """Refuse a request from another site's page.

        Raises:
            Problem: it comes from one.
        """
        origin = headers.get("origin")
        ours = origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
        if not ours or headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
            raise Problem(
                403, "other-site", "the request comes from another site's page", "open the studio's own address"
            )

    def check_api(self, headers: Mapping[str, str], client: str = "") -> None:
        """Refuse a request that may not read, or comes from another site's page. `client` is its address.

        Raises:
            Problem: as it says.
        """
        self.check_site(headers)
        if self._token is not None:
            self._check_signed_in(self._token, headers, client)
        if not self._requests.take():
            raise _too_many()

    def check_file(self, client: str) -> None:
        """Refuse a file of the page to who has had too many.

        Raises:
            Problem: as it says.
        """
        if not self._files.of(client).take():
            raise _too_many()

    def sign_in(self, headers: Mapping[str, str], token: str, client: str = "") -> str:
        """What to set as the cookie of who shows `token`. It is not the token, and does not tell it.

        Raises:
            Problem: the token is wrong, or was tried too often.
        """
        self.check_site(headers)
        if self._token is not None and not self._is_token(token.encode(), self._token, client):
            raise _wrong_token()
        return _session(self._token or "")

    def _check_signed_in(self, token: str, headers: Mapping[str, str], client: str) -> None:
        scheme, _, rest = headers.get("authorization", "").partition(" ")
        shown = rest.strip().encode("latin-1", "replace")  # the bytes that came
        if scheme.lower() == "bearer" and shown:
            if not self._is_token(shown, token, client):
                raise _wrong_token()
            return
        session = _session(token).encode()
        if not any(_same(found.encode(), session) for found in _cookies(headers.get("cookie", ""), self.cookie)):
            raise Problem(
                401, "signed-out", "a token is needed", "POST it to /api/sign-in, or send it as a bearer token"
            )

    def _is_token(self, shown: bytes, token: str, client: str) -> bool:
        tries = self._tries.of(client)
        # Not compared then, lest the answer tell that the last guess was right.
        if not tries.has_one():
            raise Problem(429, "too-many-requests", "the token was tried too often", "wait some seconds")
        if _same(shown, token.encode()):
            return True
        tries.take()
        return False


def _wrong_token() -> Problem:
    return Problem(401, "wrong-token", "the token is wrong", "the command printed it as it began")


def _too_many() -> Problem:
    return Problem(429, "too-many-requests", "too many requests at once", "ask more slowly")


def _same(shown: bytes, secret: bytes) -> bool:
    return hmac.compare_digest(shown, secret)


def _session(token: str) -> str:
    return hmac.new(token.encode(), b"incarnate studio: signed in", "sha256").hexdigest()


def _cookies(header: str, name: str) -> Iterator[str]:
    """The values of a cookie. Others of this host may be of any form, as servers at all of its ports set them."""
    for part in header.split(";"):
        found, _, value = part.partition("=")
        if found.strip() == name:
            yield value.strip().strip('"')


def _host(header: str) -> str:
    """The host of `name:port`, without the brackets of an address; empty where it is neither."""
    if header.startswith("["):
        address, closed, port = header[1:].partition("]")
        return address if closed and (not port or _is_port(port)) else ""
    name, colon, port = header.rpartition(":")
    return name if colon and _is_port(f":{port}") else header


def _is_port(text: str) -> bool:
    return text[0] == ":" and text[1:].isascii() and text[1:].isdigit()


def _is_address(host: str) -> bool:
    try:
        return "%" not in str(ipaddress.ip_address(host))  # a zone may be any text
    except ValueError:
        return False
