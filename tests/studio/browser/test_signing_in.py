"""The token of a studio: asked for once, in no address, and forgotten by who signs out."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.support.studio_browser import Log, said, session_path
from tests.support.studio_process import StudioProcess

TOKEN = "open sesame"


@pytest.fixture(scope="module")
def guarded(store: str, server: StudioProcess) -> Iterator[StudioProcess]:
    """Another studio of the store, with a token."""
    assert server.port
    with StudioProcess(store, "--token", TOKEN) as guarded:
        yield guarded


def sign_in(page: Page) -> None:
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")


def test_a_token_is_asked_for_once_and_is_in_no_address(
    context: BrowserContext, guarded: StudioProcess, log: Log
) -> None:
    log.append(said("secret"))
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(guarded.url + session_path(log.key))
    page.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_text("That is not the token.")).to_be_visible()
    sign_in(page)
    expect(page.get_by_role("feed").get_by_text("secret")).to_be_visible()
    page.reload()
    expect(page.get_by_role("feed").get_by_text("secret")).to_be_visible()

    assert [] == [url for url in asked if "sesame" in url]


@pytest.mark.timeout(180)
def test_who_signs_out_is_asked_again_in_every_window(
    context: BrowserContext, guarded: StudioProcess, log: Log
) -> None:
    log.append(said("secret"))
    page, other = context.new_page(), context.new_page()
    page.goto(guarded.url + session_path(log.key))
    expect(page.get_by_role("button", name="Sign out")).not_to_be_visible()
    sign_in(page)
    expect(page.get_by_role("feed").get_by_text("secret")).to_be_visible()
    other.goto(guarded.url + session_path(log.key))
    expect(other.get_by_role("feed").get_by_text("secret")).to_be_visible()
    page.set_viewport_size({"width": 360, "height": 740})
    expect(page.get_by_role("button", name="Sign out")).to_be_in_viewport()
    assert page.evaluate("() => document.documentElement.scrollWidth") == 360

    page.get_by_role("button", name="Sign out").click()

    for window in (page, other):
        expect(window.get_by_label("Token")).to_be_visible()
        expect(window.get_by_text("secret")).to_have_count(0)
        expect(window.get_by_role("button", name="Sign out")).not_to_be_visible()
    assert [] == context.cookies()
    page.go_back()
    expect(page.get_by_text("secret")).to_have_count(0)
    sign_in(other)
    expect(other.get_by_role("feed").get_by_text("secret")).to_be_visible()


@pytest.mark.usefixtures("guarded")
def test_without_a_token_there_is_nothing_to_sign_out_of(
    context: BrowserContext, server: StudioProcess, log: Log
) -> None:
    log.append(said("one"))
    page = context.new_page()
    with page.expect_response("**/api/sign-in"):
        page.goto(server.url + session_path(log.key))
    expect(page.get_by_role("feed").get_by_text("one")).to_be_visible()
    expect(page.get_by_role("button", name="Sign out")).not_to_be_visible()


def test_whoever_goes_elsewhere_before_signing_in_is_still_asked(
    context: BrowserContext, guarded: StudioProcess, log: Log
) -> None:
    log.append(said("secret"))
    page = context.new_page()
    page.goto(guarded.url + session_path(log.key))
    expect(page.get_by_label("Token")).to_be_visible()
    page.get_by_role("link", name="incarnate studio").click()
    page.go_back()
    sign_in(page)

    expect(page.get_by_role("feed").get_by_text("secret")).to_be_visible()
