"""The studio's page in a real browser: what a person would look at, and what nobody may see."""

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Route, expect

from incarnate import (
    ActivationKey,
    AppendMany,
    GetHead,
    Opaque,
    SessionEvent,
    SessionSystem,
    UserMessage,
    encode_appended,
)

__all__ = ["Log", "Watched", "said", "session_path"]


def session_path(key: ActivationKey, at: int | None = None, tab: str | None = None) -> str:
    place = "" if at is None else f"/at/{at}"
    return f"/s/{quote(str(key), safe='')}{place}" + (f"?tab={tab}" if tab else "")


def said(*texts: str) -> list[UserMessage]:
    return [UserMessage(id=text, parent_id=None, text=text) for text in texts]


class Log:
    """A log that the test writes: it appends and rewinds."""

    def __init__(self, system: SessionSystem, key: ActivationKey) -> None:
        self.system = system
        self.key = key
        self._activation = system.activation(key)
        system.lease(key, 1)
        self.size = 0

    def append(self, events: Iterable[SessionEvent | Opaque], at: int | None = None) -> None:
        """Append, or rewind to `at` and append there."""
        given = tuple(events)
        offset = self.size if at is None else at
        self._activation.ask(AppendMany(1, offset, given))
        self.size = offset + len(given)

    def grown(self) -> int:
        """How many events another process has brought it to."""
        self.size = self._activation.ask(GetHead()).next_offset
        return self.size

    def events(self) -> list[Any]:
        """What the library replays."""
        return [json.loads(encode_appended(each)) for each in self.system.replay(self.key)]


class Watched:
    """A page, with whatever it asked for outside its origin, and whatever it complained of."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.base = base
        self.page: Page = context.new_page()
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", self._request)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("popup", lambda popup: self.asked.append(popup.url))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.base}/", "data:,")):
            self.asked.append(request.url)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def forget_missing(self) -> None:
        """Let it complain of what was not there any more when it asked: what is swept may go between two questions."""
        self.complaints = [told for told in self.complaints if "404 (Not Found)" not in told]

    def open(self, path: str = "/") -> Page:
        self.page.goto(self.base + path)
        return self.page

    def watch(self, key: ActivationKey, at: int | None = 0, tab: str | None = None) -> Page:
        """Open a session."""
        self.open(session_path(key, at, tab))
        expect(self.page.locator("#tab-panel > *")).to_be_visible()
        return self.page

    def show_raw(self) -> None:
        """Show every event as its JSON."""
        self.page.get_by_role("button", name="Raw").click()

    def raw_events(self) -> list[Any]:
        """What stands in the rows now; the page must show raw events, and be high enough for all of them."""
        texts = self.page.locator("article:not(.waiting) .raw pre").all_text_contents()
        return [json.loads(text) for text in texts]

    def shows(self, log: Log) -> bool:
        """Whether the page shows exactly what the library replays; it is given a moment for it."""
        wanted = log.events()
        self.page.wait_for_function(_SHOWS, arg=json.dumps(wanted, sort_keys=True), timeout=30_000)
        return wanted == self.raw_events()


# How many rows there are, and whether the last is the wanted one: a cheap sign that it is worth comparing.
_SHOWS = """(wanted) => {
    const events = JSON.parse(wanted);
    const rows = [...document.querySelectorAll("article:not(.waiting) .raw pre")];
    if (rows.length !== events.length) return false;
    return rows.every((row, at) => {
        const shown = JSON.parse(row.textContent);
        return shown.offset === events[at].offset && shown.at === events[at].at && shown.id === events[at].id
            && shown.type === events[at].type;
    });
}"""


def refused(route: Route) -> None:
    """Let nothing out that is not for this machine."""
    if urlsplit(route.request.url).hostname == "127.0.0.1":
        route.continue_()
    else:
        route.abort()
