"""Whatever is searched and filtered while a session is written and rewound, the rows are those that fit."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, BrowserContext, Page

from incarnate import ActivationKey, AssistantMessage, Reasoning, SessionEvent, SessionSystem, ToolCall, UserMessage
from tests.support.studio_browser import Log, Watched, said
from tests.support.studio_process import StudioProcess

LINE: dict[str, Any] = {"id": "e", "parent_id": None}
KINDS = {"Prompts": "user", "Answers": "assistant", "Calls": "tool-call"}
WORD = "needle"
TEXTS = st.sampled_from(["hay", f"a {WORD} in it", WORD.upper()])
EVENTS: st.SearchStrategy[SessionEvent] = st.one_of(
    st.builds(lambda text: UserMessage(**LINE, text=text), TEXTS),
    st.builds(lambda text: AssistantMessage(**LINE, text=text), TEXTS),
    st.builds(lambda text: Reasoning(**LINE, text=text), TEXTS),
    st.builds(lambda text: ToolCall(**LINE, call_id="c", name="run", args={"x": text}), TEXTS),
)
WRITTEN = st.tuples(st.floats(0, 1) | st.none(), st.lists(EVENTS, min_size=1, max_size=5))
STEPS = st.lists(WRITTEN | st.sampled_from([*KINDS, "search", "only"]), min_size=4, max_size=12)
# Every event is in the rows, in its place; what was not loaded yet is no row.
SHOWS = """([offsets, found]) => {
    const rows = [...document.querySelectorAll(".rows article")];
    const shown = rows.map((row) => row.classList.contains("waiting") ? -1 : Number(row.dataset.offset));
    const told = document.querySelector(".found").textContent;
    return JSON.stringify(shown) === JSON.stringify(offsets) && (found === null ? told === "" : told.endsWith(found));
}"""


class Looking:
    """What is asked for on the page, and which events fit it."""

    def __init__(self, page: Page, log: Log) -> None:
        self.page = page
        self.log = log
        self.kinds: set[str] = set()
        self.searches = False
        self.only = False

    def take(self, step: Any) -> None:
        """Write, or press something."""
        if isinstance(step, tuple):
            share, events = step
            self.log.append(events, at=None if share is None else int(share * self.log.size))
        elif step in KINDS:
            self.page.get_by_role("button", name=step, exact=True).click()
            self.kinds ^= {KINDS[step]}
        elif step == "search":
            self.searches = not self.searches
            self.page.get_by_label("Search this session").fill(WORD if self.searches else "")
        elif self.searches:
            self.page.get_by_role("button", name="Only matches").click()
            self.only = not self.only

    def holds(self) -> None:
        """Wait until the rows are those that fit; it fails where they never are."""
        fitting = [event for event in self.log.events() if not self.kinds or event["type"] in self.kinds]
        matches = [event for event in fitting if WORD in json.dumps(event).lower()]
        rows = matches if self.searches and self.only else fitting
        found = (str(len(matches)) if matches else "no match") if self.searches else None
        self.page.wait_for_function(SHOWS, arg=[[event["offset"] for event in rows], found])


@pytest.fixture(scope="module")
def high(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1280, "height": 9000})
    context.set_default_timeout(20_000)
    yield context
    context.close()


QUICK = [Phase.explicit, Phase.generate]  # to shrink would take longer than a test may


@pytest.mark.timeout(300)
@settings(max_examples=5, phases=QUICK, suppress_health_check=[HealthCheck.too_slow], database=None, deadline=None)
@given(steps=STEPS)
def test_the_rows_are_those_that_fit_whatever_happens(
    high: BrowserContext, server: StudioProcess, system: SessionSystem, steps: list[Any]
) -> None:
    log = Log(system, ActivationKey("filtered", str(time.monotonic_ns())))
    log.append(said("the first"))
    watched = Watched(high, server.url)
    looking = Looking(watched.watch(log.key), log)
    for step in steps:
        looking.take(step)
        looking.holds()
    watched.page.close()

    assert ([], []) == (watched.asked, watched.complaints)
