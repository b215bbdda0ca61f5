"""The studio's page as one file: its modules as one script, its style and its data inside, and a policy for just these.

The modules keep to what can be joined without a compiler: imports of names alone, one a line, no name twice among the
top-level ones. What does not is refused here, and so by the tests, before anybody exports a page that is broken.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["BundleError", "Page", "joined", "page_of", "the_page"]

_START = "main.js"
_IMPORT = re.compile(r'^import \{[\w$, ]+\} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const|let)\b)", re.MULTILINE)
_LEFT = re.compile(
    r"^(?:import|export)\b.*|\bimport\s*\(.*|\bimport\.meta\b|</script|<!--", re.MULTILINE | re.IGNORECASE
)
_TOP_LEVEL = re.compile(r"^(?:async function\*?|function\*?|class|const|let|var) ([\w$]+)", re.MULTILINE)
_STYLE = re.compile(r'<link rel="stylesheet" href="[^"]*">')
_SCRIPT = re.compile(r'<script type="module" src="[^"]*"></script>')
_CHARSET = '<meta charset="utf-8">'
_TITLE = re.compile(r"<title>[^<]*</title>")


class BundleError(Exception):
    """The sources of the page cannot be joined: a fault of this version, not of whoever exports."""


class Page(NamedTuple):
    """The page in one file, around its data; `title` has a place of its own."""

    before_title: str
    before_data: str
    after_data: str

    def around(self, title: str, data: Sequence[bytes]) -> Iterator[bytes]:
        """The file, piece by piece. `data` is JSON; its `<` are escaped here, so that nothing in it ends the script."""
        yield f"{self.before_title}{escape(title)}{self.before_data}".encode()
        for piece in data:
            yield piece.replace(b"<", b"\\u003c")
        yield self.after_data.encode()


@cache
def the_page() -> Page:
    """The page of this version.

    Raises:
        BundleError: its sources cannot be joined.
    """
    folder = files("incarnate.studio") / "page"
    sources = {
        file.name: file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith((".js", ".css", ".html"))
    }
    return page_of(sources)


def page_of(sources: Mapping[str, str]) -> Page:
    """The page that files make, by their names: `index.html`, `style.css`, `main.js` and the modules.

    Raises:
        BundleError: they cannot be joined.
    """
    script, style = joined(sources), sources["style.css"]
    if "</style" in style.lower():
        raise BundleError("style.css holds the end of a style")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}'; style-src 'sha256-{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    html = sources["index.html"]
    html = _replaced(html, re.compile(re.escape(_CHARSET)), f"{_CHARSET}\n    {_policy(policy)}")
    html = _replaced(html, _STYLE, f"<style>{style}</style>")
    data = '<script type="application/json" id="incarnate-data">\0</script>'
    html = _replaced(html, _SCRIPT, f'{data}\n    <script type="module">{script}</script>')
    html = _replaced(html, _TITLE, "<title>\0</title>")
    before_title, before_data, after_data = html.split("\0")
    return Page(before_title, before_data, after_data)


def joined(sources: Mapping[str, str]) -> str:
    """The modules as one script, each after those that it imports.

    Raises:
        BundleError: with the module and what of it cannot be joined.
    """
    order: dict[str, str] = {}
    _visit(_START, sources, order, ())
    owners: dict[str, str] = {}
    for name, text in order.items():
        for declared in _TOP_LEVEL.findall(text):
            if declared in owners:
                raise BundleError(f"{name} declares {declared}, as {owners[declared]} does: name one of them otherwise")
            owners[declared] = name
    return "\n".join(order.values())


def _visit(name: str, sources: Mapping[str, str], order: dict[str, str], path: tuple[str, ...]) -> None:
    if name in order:
        return
    if name in path:
        raise BundleError(f"modules import each other in a circle: {' > '.join((*path, name))}")
    if name not in sources:
        raise BundleError(f"{path[-1] if path else 'the page'} imports {name}, which is not there")
    text = sources[name]
    for imported in _IMPORT.findall(text):
        _visit(imported, sources, order, (*path, name))
    text = _EXPORT.sub("", _IMPORT.sub("", text))
    left = _LEFT.search(text)
    if left is not None:
        raise BundleError(f"{name} holds {left[0]!r:.80}, which cannot be joined")
    order[name] = text


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _policy(policy: str) -> str:
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def _replaced(html: str, pattern: re.Pattern[str], by: str) -> str:
    found = pattern.findall(html)
    if len(found) != 1:
        raise BundleError(f"index.html holds {pattern.pattern} {len(found)} times, not once")
    return pattern.sub(lambda _: by, html)
