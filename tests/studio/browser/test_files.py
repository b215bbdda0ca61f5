"""The rules that the page's own files keep: short, of one noun, without anything that takes text for markup or code."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "studio" / "page"
MOST_LINES = 400
# What would make markup or code of a text, and what would go to another place.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|createContextualFragment|setHTMLUnsafe|\beval\b"
    r"|new Function|setTimeout\(\s*[\"'`]|import\(|XMLHttpRequest|WebSocket|sendBeacon|text/html"
)


def modules() -> list[Path]:
    return sorted(PAGE.glob("*.js"))


def test_no_file_of_the_page_is_too_long() -> None:
    files = [*modules(), PAGE / "style.css"]
    too_long = {file.name: len(file.read_bytes().splitlines()) for file in files}

    assert {} == {name: lines for name, lines in too_long.items() if lines > MOST_LINES}


def test_no_module_takes_text_for_markup_or_code() -> None:
    found = {file.name: FORBIDDEN.findall(file.read_text(encoding="utf-8")) for file in modules()}

    assert {} == {name: words for name, words in found.items() if words}


def test_the_style_asks_for_nothing() -> None:
    style = (PAGE / "style.css").read_text(encoding="utf-8")

    assert [] == re.findall(r"url\(|@import|@font-face", style)


def test_every_module_says_what_it_is_for() -> None:
    silent = [file.name for file in modules() if not file.read_text(encoding="utf-8").startswith("// ")]

    assert [] == silent


def test_every_colour_has_a_light_and_a_dark_form() -> None:
    style = (PAGE / "style.css").read_text(encoding="utf-8")
    one_form = re.findall(r"#[0-9a-fA-F]{3,8}\b", re.sub(r"light-dark\([^)]*\)", "", style))

    assert [] == one_form
