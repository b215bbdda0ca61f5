"""What a rewind superseded, read while the session goes on, is rewound again, and is swept."""

from datetime import timedelta

from playwright.sync_api import Page, Route, expect

from incarnate import SessionSystem
from tests.support.studio_browser import Log, Watched, said


def rewound(log: Log) -> None:
    """A hundred and twenty events, of which all from 10 on were superseded by one."""
    log.append(said(*[f"first {number}" for number in range(120)]))
    log.append(said("second 10"), at=10)


def tail(page: Page) -> list[str]:
    return page.locator(".gone article .prose").all_inner_texts()


def test_a_tail_that_is_read_stays_when_the_session_is_rewound_again(watched: Watched, log: Log) -> None:
    rewound(log)
    page = watched.watch(log.key, at=None, tab="superseded")
    page.locator(".gone").get_by_role("button", name="Show more").click()
    expect(page.locator(".gone article")).to_have_count(100)
    before = tail(page)

    log.append(said("third 9"), at=9)

    expect(page.locator("#which-rewind option")).to_have_count(2)
    expect(page.locator("#which-rewind")).to_have_value("1")
    expect(page.locator(".now .empty")).to_have_text("Nothing was written there since.")
    assert before == tail(page)


def test_what_stands_there_now_is_offered_as_it_comes(watched: Watched, log: Log) -> None:
    rewound(log)
    page = watched.watch(log.key, at=None, tab="superseded")
    expect(page.locator(".now article")).to_have_count(1)

    log.append(said("second 11", "second 12"))
    page.get_by_role("button", name="Show more (2 left)").click()

    expect(page.locator(".now article .prose")).to_have_text(["second 10", "second 11", "second 12"])
    expect(page.locator(".now").get_by_role("button", name="Show more")).not_to_be_visible()


def test_the_first_rewind_of_a_session_is_shown_where_there_was_none(watched: Watched, log: Log) -> None:
    log.append(said("one", "two"))
    page = watched.watch(log.key, at=None, tab="superseded")
    expect(page.get_by_text("Nothing was ever superseded here.")).to_be_visible()

    log.append(said("another two"), at=1)

    expect(page.locator(".gone article .prose")).to_have_text(["two"])


def test_a_tail_that_was_swept_while_others_were_read_is_no_trouble(
    watched: Watched, log: Log, system: SessionSystem
) -> None:
    rewound(log)
    log.append(said("third 9"), at=9)
    page = watched.watch(log.key, at=None, tab="superseded")
    expect(page.locator(".gone article")).to_have_count(2)
    system.sweep(timedelta(seconds=-1))

    page.locator("#which-rewind").select_option("1")

    expect(page.get_by_text("What was superseded here was swept since.")).to_be_visible()
    expect(page.locator("#notes")).to_contain_text("was swept since")
    expect(page.locator(".trouble")).not_to_be_visible()
    watched.forget_missing()


def test_a_tail_that_was_swept_between_the_list_of_rewinds_and_its_reading_is_no_trouble(
    watched: Watched, log: Log, system: SessionSystem
) -> None:
    rewound(log)

    def swept_just_before(route: Route) -> None:
        system.sweep(timedelta(seconds=-1))
        route.continue_()

    watched.page.route("**/superseded/*", swept_just_before)
    page = watched.watch(log.key, at=None, tab="superseded")

    expect(page.get_by_text("What was superseded here was swept since.")).to_be_visible()
    expect(page.locator(".trouble")).not_to_be_visible()
    watched.forget_missing()


def test_a_tail_that_was_swept_while_it_was_read_is_no_trouble(
    watched: Watched, log: Log, system: SessionSystem
) -> None:
    rewound(log)
    page = watched.watch(log.key, at=None, tab="superseded")
    expect(page.locator(".gone article")).to_have_count(50)
    system.sweep(timedelta(seconds=-1))

    page.locator(".gone").get_by_role("button", name="Show more").click()

    expect(page.get_by_text("What was superseded here was swept since.")).to_be_visible()
    expect(page.locator(".trouble")).not_to_be_visible()
    watched.forget_missing()
