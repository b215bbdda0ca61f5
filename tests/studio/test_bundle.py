"""The page in one file: its modules joined in order, its data where it can do no harm, a policy for just these."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest

from incarnate.studio.bundle import BundleError, joined, page_of, the_page

PAGE = {
    "index.html": '<!doctype html>\n<meta charset="utf-8">\n<title>studio</title>\n'
    '<link rel="stylesheet" href="/style.css">\n<script type="module" src="/main.js"></script>\n<body></body>\n',
    "style.css": "body { color: red }",
    "main.js": 'import {b} from "./b.js";\nimport {a} from "./a.js";\n\nb(a);\n',
    "a.js": "export const a = 1;\n",
    "b.js": 'import {a} from "./a.js";\n\n// import of words\nexport function b(c) {\n  return a + c;\n}\n',
}


def written(title: str = "t", data: bytes = b"{}", sources: dict[str, str] = PAGE) -> str:
    return b"".join(page_of(sources).around(title, [data])).decode()


def hashes(html: str, kind: str) -> tuple[str, str]:
    """The hash that the policy names, and that of what stands in the page."""
    [named] = re.findall(rf"{kind}-src 'sha256-([^']+)'", html)
    pattern = r'<script type="module">(.*?)</script>' if kind == "script" else r"<style>(.*?)</style>"
    [text] = re.findall(pattern, html, flags=re.DOTALL)
    return named, b64encode(sha256(text.encode()).digest()).decode()


def test_each_module_stands_behind_those_that_it_imports_and_none_twice() -> None:
    script = joined(PAGE)

    assert ["const a = 1;", "function b(c) {", "b(a);"] == [
        line for line in script.splitlines() if line.startswith(("const", "function", "b("))
    ]
    assert "export" not in script
    assert not re.search(r"^import", script, flags=re.MULTILINE)


def test_the_policy_allows_the_script_and_the_style_that_are_there_and_nothing_else() -> None:
    html = written()

    assert "default-src 'none'" in html
    for kind in ("script", "style"):
        named, found = hashes(html, kind)
        assert named == found


def test_nothing_in_the_data_or_the_title_ends_where_it_stands() -> None:
    html = written("</title><script>1</script>", b'{"a":"</script><script>1</script><!--"}')

    assert 2 == html.count("</script>")
    assert r'{"a":"\u003c/script>\u003cscript>1\u003c/script>\u003c!--"}' in html
    assert "<title>&lt;/title&gt;" in html


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        ({"a.js": "export const a = 1;\nconst b = 2;\n"}, "b.js declares b, as a.js does"),
        ({"a.js": 'import {b} from "./b.js";\nexport const a = b;\n'}, "circle: main.js > b.js > a.js > b.js"),
        ({"a.js": 'import {c} from "./c.js";\n'}, "a.js imports c.js, which is not there"),
        ({"a.js": "export default 1;\n"}, "a.js holds 'export default 1;'"),
        ({"a.js": 'import * as c from "./c.js";\n'}, "a.js holds 'import \\* as c"),
        ({"a.js": 'const c = await import("./c.js");\n'}, "a.js holds 'import\\("),
        ({"a.js": 'export const a = "</script>";\n'}, "a.js holds '</script'"),
        ({"style.css": "</style>"}, "style.css holds the end of a style"),
        ({"index.html": "<html></html>"}, "index.html holds .* 0 times, not once"),
    ],
)
def test_sources_that_cannot_be_joined_are_refused_with_what_it_is(sources: dict[str, str], told: str) -> None:
    with pytest.raises(BundleError, match=told):
        page_of(PAGE | sources)


@pytest.mark.smoke
def test_the_page_of_this_version_asks_for_nothing_outside_of_it() -> None:
    html = b"".join(the_page().around("a/b", [b"{}"])).decode()

    assert [] == re.findall(r'<(?:script|link|img|iframe|object)\b[^>]*\b(?:src|href)="(?!data:)[^"]*"', html)
    for kind in ("script", "style"):
        named, found = hashes(html, kind)
        assert named == found
