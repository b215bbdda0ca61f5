"""The API's answers in JSON: each is worked out on a thread, and reads the store."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from incarnate.actors.fields import rewind_fields, stats_fields
from incarnate.domain.codec import encode_json
from incarnate.domain.projections.analysis import ReplayAnalysis
from incarnate.domain.projections.usage import UsageTotals
from incarnate.studio.details import details
from incarnate.studio.drawings import Drawings
from incarnate.studio.finding import Finder, Wanted
from incarnate.studio.limits import LEAST_WIDTH, MOST_WIDTH
from incarnate.studio.listing import STATES, Query
from incarnate.studio.masking import mask_row
from incarnate.studio.openapi import OPENAPI
from incarnate.studio.pages import Range, messages, superseded_page
from incarnate.studio.problems import Problem
from incarnate.studio.requests import key_of
from incarnate.studio.views import EVENTS, VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from incarnate.domain.keys import ActivationKey
    from incarnate.studio.archive import Archive
    from incarnate.studio.listing import Listing
    from incarnate.studio.requests import Parameters

__all__ = ["Answers"]

_MOST_OFFSET = 2**53 - 1
_MOST_LIMIT = 1000
_LIMIT = 200
_WIDTH = 1200
_MOST_FOUND = 1_000_000


class Answers:
    """All that is answered with JSON."""

    def __init__(self, archive: Archive, listing: Listing) -> None:
        self._archive = archive
        self._listing = listing
        self._finder = Finder(archive)
        self._drawings = Drawings(archive)
        self._of_session = {
            "messages": self._messages,
            "find": self._find,
            "stats": self._stats,
            "rewinds": self._rewinds,
            "timeline": self._timeline,
        }

    def find(self, path: list[str]) -> Callable[[Parameters], bytes] | None:
        """What answers at a path below `/api`; None: nothing does."""
        match path:
            case ["openapi.json"]:
                return lambda _: OPENAPI
            case ["sessions"]:
                return self._sessions
            case ["sessions", name]:
                return partial(self._session, key_of(name))
            case ["sessions", name, "superseded", generation]:
                return partial(self._superseded, key_of(name), generation)
            case ["sessions", name, what] if what in self._of_session:
                return partial(self._of_session[what], key_of(name))
            case _:
                return None

    def _encoded(self, fields: dict[str, Any]) -> bytes:
        return encode_json(mask_row(fields) if self._archive.mask else fields)

    def _sessions(self, parameters: Parameters) -> bytes:
        query = Query(
            parameters.text("q", most=256),
            parameters.choice("state", STATES, None),
            parameters.optional("after"),
            parameters.integer("limit", 50, 1, _MOST_LIMIT),
        )
        page = self._listing.page(query)
        rows = page["sessions"]
        return encode_json(page | {"sessions": list(map(mask_row, rows)) if self._archive.mask else rows})

    def _session(self, key: ActivationKey, _: Parameters) -> bytes:
        return self._encoded(self._listing.find(key) | details(self._archive, key))

    def _messages(self, key: ActivationKey, parameters: Parameters) -> bytes:
        view = parameters.choice("view", (EVENTS, *VIEWS), "studio") or ""
        return messages(self._archive, key, view, _range(parameters))

    def _find(self, key: ActivationKey, parameters: Parameters) -> bytes:
        kinds = frozenset(filter(None, parameters.text("kinds").split(",")))
        wanted = Wanted(parameters.text("q", most=256).casefold(), kinds)
        start = parameters.integer("from", 0, 0, _MOST_OFFSET)
        limit = parameters.integer("limit", _MOST_FOUND, 1, _MOST_FOUND)
        return encode_json(self._finder.find(key, wanted, start, limit))

    def _stats(self, key: ActivationKey, _: Parameters) -> bytes:
        head = self._archive.head(key)
        analysis = self._archive.sum(key, ReplayAnalysis())
        return self._encoded(stats_fields(key, head, analysis, self._archive.sum(key, UsageTotals())))

    def _rewinds(self, key: ActivationKey, _: Parameters) -> bytes:
        with self._archive.moment(key) as log:
            return encode_json([rewind_fields(rewind) for rewind in log.rewinds()])

    def _superseded(self, key: ActivationKey, generation: str, parameters: Parameters) -> bytes:
        if not (generation.isascii() and generation.isdigit() and len(generation) <= 16):  # noqa: PLR2004
            raise Problem(404, "unknown-rewind", "a generation is a whole number")
        return superseded_page(self._archive, key, int(generation), _range(parameters))

    def _timeline(self, key: ActivationKey, parameters: Parameters) -> bytes:
        width = parameters.integer("width", _WIDTH, LEAST_WIDTH, MOST_WIDTH)
        place, drawn = self._drawings.of(key, width)
        return encode_json({"id": str(place), "svg": drawn})  # its texts were masked before they were drawn


def _range(parameters: Parameters) -> Range:
    return Range(
        parameters.integer("from", 0, 0, _MOST_OFFSET),
        parameters.integer("limit", _LIMIT, 1, _MOST_LIMIT),
        full=parameters.flag("full"),
    )
