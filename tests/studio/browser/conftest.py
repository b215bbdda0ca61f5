"""A real Chromium, a store and its studio for each module."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from incarnate import ActivationKey, SessionSystem
from tests.support.studio_browser import Log, Watched
from tests.support.studio_process import StudioProcess

PATIENCE = 20_000  # milliseconds, for what must come: where ten others want the processor a reload takes six seconds
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


# One for each module and no longer: while it lives, its loop runs on this thread, and no other test can have one.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}: `apt-get install chromium`")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=ARGUMENTS,
            ignore_default_args=["--hide-scrollbars"],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def store(swift_module_path: Path) -> str:
    return f"sqlite:///{swift_module_path}/studio.db"


@pytest.fixture(scope="module")
def system(store: str) -> Iterator[SessionSystem]:
    with SessionSystem.open(store) as system:
        yield system


@pytest.fixture(scope="module")
def server(system: SessionSystem, store: str) -> Iterator[StudioProcess]:
    system.activations()  # the file is there before anybody reads it
    with StudioProcess(store) as server:
        yield server


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def watched(context: BrowserContext, server: StudioProcess) -> Iterator[Watched]:
    """A page that must not complain, nor ask for anything outside its origin."""
    watched = Watched(context, server.url)
    yield watched

    assert ([], []) == (watched.asked, watched.complaints)


@pytest.fixture
def log(system: SessionSystem, request: pytest.FixtureRequest) -> Log:
    """A log of this test's own."""
    return Log(system, ActivationKey("test", request.node.name))


@pytest.fixture(scope="module")
def another_log(system: SessionSystem, request: pytest.FixtureRequest) -> Callable[[str], Log]:
    """Makes further ones, which the tests of a module may share."""
    return lambda name: Log(system, ActivationKey(Path(request.node.name).stem, name))
