"""The stream overtakes answers that are still on their way: the older of the two undoes nothing."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import APIResponse, Page, Route, expect

from incarnate import ActivationKey
from tests.support.studio_browser import Log, Watched, said, session_path

TURN = """how => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => how === "hidden" });
    document.dispatchEvent(new Event("visibilitychange"));
}"""

GO = """path => {
    history.pushState(null, "", path);
    window.dispatchEvent(new PopStateEvent("popstate"));
}"""


class Held:
    """The next answer to a question: the server gave it, and the page has to wait for it."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._given: list[tuple[Route, APIResponse]] = []
        self._page = page
        page.route(pattern, self._hold, times=1)

    def _hold(self, route: Route) -> None:
        self._given.append((route, route.fetch()))

    def wait(self) -> None:
        while not self._given:
            self._page.evaluate("() => new Promise(requestAnimationFrame)")

    def let_go(self) -> None:
        self.wait()
        [(route, answer)] = self._given
        route.fulfill(response=answer)


class Asked:
    """Questions that the server is not asked yet."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._routes: list[Route] = []
        self._page = page
        page.route(pattern, self._hold)

    def _hold(self, route: Route) -> None:
        self._routes.append(route)

    def next(self) -> Route:
        while not self._routes:
            self._page.evaluate("() => new Promise(requestAnimationFrame)")
        return self._routes.pop(0)


def test_a_session_that_came_while_others_were_looked_for_stays_in_the_list(
    watched: Watched, another_log: Callable[[str], Log]
) -> None:
    another_log("apple").append(said("red"))
    another_log("pear").append(said("green"))
    page = watched.open()
    expect(page.locator(".session-row")).to_have_count(2)
    held = Held(page, "**/api/sessions?*")
    page.get_by_label("Find a session").fill("apple")
    held.wait()
    another_log("pineapple").append(said("yellow"))
    expect(page.locator(".session-row", has_text="pineapple")).to_be_visible()

    held.let_go()

    expect(page.locator(".session-row", has_text="pear")).to_have_count(0)
    expect(page.locator(".session-row")).to_have_count(2)


def test_a_take_over_that_came_while_a_session_was_opened_stands_in_its_head(watched: Watched, log: Log) -> None:
    log.append(said("one"))
    held = Held(watched.page, f"**/api{session_path(log.key).replace('/s/', '/sessions/')}")
    page = watched.open(session_path(log.key, tab="history"))
    held.wait()
    log.system.lease(log.key, 7)
    expect(page.locator(".session-row", has_text=str(log.key))).to_contain_text("incarnation 7")

    held.let_go()

    expect(page.locator(".facts")).to_contain_text("incarnation 7")


def test_an_event_that_came_while_it_was_searched_for_is_found(watched: Watched, log: Log) -> None:
    log.append(said("a needle"))
    page = watched.watch(log.key)
    held = Held(page, "**/find?*")
    page.get_by_label("Search this session").fill("needle")
    held.wait()
    log.append(said("hay", "another needle"))
    expect(page.get_by_text("another needle", exact=True)).to_be_visible()

    held.let_go()

    expect(page.locator(".found")).to_have_text("2")


def test_a_page_that_is_left_while_it_loads_begins_its_stream_when_it_is_seen(watched: Watched, log: Log) -> None:
    log.append(said("before"))
    held = Held(watched.page, "**/messages?*")
    page = watched.watch(log.key)
    held.wait()
    streams: list[Any] = []
    with page.expect_event("requestfailed", lambda request: "/api/changes?" in request.url):
        page.evaluate(TURN, "hidden")
    page.on("request", lambda request: streams.append(request.url) if "/api/changes?" in request.url else None)

    held.let_go()

    expect(page.get_by_role("feed").get_by_text("before")).to_be_visible()
    assert [] == streams
    log.append(said("meanwhile"))
    page.evaluate(TURN, "seen")
    expect(page.get_by_role("feed").get_by_text("meanwhile")).to_be_visible()


def test_a_session_that_is_not_there_takes_nothing_from_the_one_that_one_went_on_to(watched: Watched, log: Log) -> None:
    log.append(said("here"))
    page = watched.open()
    asked = Asked(page, "**/api/sessions/*%2F*")
    page.evaluate(GO, session_path(ActivationKey("not", "here")))
    missing = asked.next()
    page.evaluate(GO, session_path(log.key))
    there = asked.next()

    with page.expect_response("**/not%2Fhere"):
        missing.continue_()
    there.continue_()

    expect(page.get_by_role("feed").get_by_text("here")).to_be_visible()
    watched.forget_missing()


def test_a_tab_that_fails_late_takes_nothing_from_the_one_that_is_shown_since(watched: Watched, log: Log) -> None:
    log.append(said("here"))
    page = watched.watch(log.key)
    asked = Asked(page, "**/timeline?*")
    page.get_by_role("tab", name="Timeline").click()
    late = asked.next()
    page.get_by_role("tab", name="Transcript").click()
    expect(page.get_by_role("feed").get_by_text("here")).to_be_visible()

    with page.expect_response("**/timeline?*"):
        late.fulfill(status=503, json={"error": {"kind": "store-busy", "message": "busy", "hint": ""}})

    log.append(said("live"))
    expect(page.get_by_role("feed").get_by_text("live")).to_be_visible()
    expect(page.locator(".trouble")).to_be_hidden()
    watched.complaints.clear()


def test_a_place_that_one_went_to_while_another_was_loaded_is_the_one_that_is_shown(watched: Watched, log: Log) -> None:
    log.append(said(*[f"line {number}" for number in range(300)]))
    page = watched.watch(log.key, tab="history")
    held = Held(page, "**/messages?*")
    page.evaluate(GO, session_path(log.key, 5))
    held.wait()
    page.evaluate(GO, session_path(log.key, 250))

    held.let_go()

    expect(page.get_by_text("line 250", exact=True)).to_be_in_viewport()


def test_what_a_model_would_be_sent_is_counted_as_it_was_asked_last(watched: Watched, log: Log) -> None:
    log.append(said("one"))
    page = watched.watch(log.key, tab="model")
    told = page.locator(".diagnostics [role=status]")
    expect(told).to_contain_text("1 message,")
    held = Held(page, "**/messages?*limit=1")
    log.append(said("two"))
    held.wait()
    log.append(said("three"))
    expect(told).to_contain_text("3 messages,")

    with page.expect_response("**/messages?*limit=1"):
        held.let_go()

    expect(page.get_by_text("three", exact=True)).to_be_visible()
    expect(told).to_contain_text("3 messages,")
