"""The page's own modules, by themselves: markdown, heights, the pages of a view."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.support.studio_process import StudioProcess


@pytest.fixture(scope="module")
def blank(chromium: Browser, server: StudioProcess) -> Iterator[Page]:
    page = chromium.new_page()
    page.goto(server.url)
    yield page
    page.close()


def run(page: Page, module: str, body: str, given: Any = None) -> Any:
    """What a body of JavaScript gives, with the module as `m` and the argument as `given`."""
    script = f"async (given) => {{ const m = await import('/static/{module}.js'); {body} }}"
    return page.evaluate(script, given)


MARKDOWN = {
    "plain": "<p>plain</p>",
    "a\nb": "<p>a\nb</p>",
    "# one\n###### six": '<div role="heading" aria-level="4">one</div><div role="heading" aria-level="9">six</div>',
    "**b** *i* __b__ _i_ ~~d~~": "<p><strong>b</strong> <em>i</em> <strong>b</strong> <em>i</em> <del>d</del></p>",
    "snake_case_name 2 * 3 * 4": "<p>snake_case_name 2 * 3 * 4</p>",
    "**never closed": "<p>**never closed</p>",
    "`a *b*` ``c ` d``": "<p><code>a *b*</code> <code>c ` d</code></p>",
    "\\*not\\*": "<p>*not*</p>",
    "- a\n- b\n  - c": "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>",
    "3. a\n4. b": '<ol start="3"><li>a</li><li>b</li></ol>',
    "> q\n> r": "<blockquote><p>q\nr</p></blockquote>",
    "---": "<hr>",
    "a | b\n--|--:\n1 | 2": (
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>"
    ),
    "<b>no</b> &amp;": "<p>&lt;b&gt;no&lt;/b&gt; &amp;amp;</p>",
    "![alt](https://x.example/i.png)": "<p>▣ alt https://x.example/i.png</p>",
    "[a](javascript:x)": "<p>a (javascript:x)</p>",
}

# What a person sees of it: elements that mean something, with the attributes that do.
MEANT = """
    const kept = new Set("P STRONG EM DEL CODE UL OL LI BLOCKQUOTE HR TABLE THEAD TBODY TR TH TD".split(" "));
    const strip = (node) => {
        const copy = document.createDocumentFragment();
        for (const child of node.childNodes) {
            const keep = child.nodeType === 1 && (kept.has(child.tagName) || child.getAttribute("role") === "heading");
            if (child.nodeType !== 1) copy.append(child.cloneNode());
            else if (!keep) copy.append(strip(child));
            else {
                const made = document.createElement(child.tagName);
                for (const { name, value } of child.attributes) {
                    if (["role", "aria-level", "start"].includes(name)) made.setAttribute(name, value);
                }
                made.append(strip(child));
                copy.append(made);
            }
        }
        return copy;
    };
    const whole = document.createElement("div");
    whole.append(strip(m.markdown(given)));
    return whole.innerHTML;
"""


def test_markdown_becomes_what_it_means(blank: Page) -> None:
    assert MARKDOWN == {text: run(blank, "markdown", MEANT, text) for text in MARKDOWN}


@pytest.mark.parametrize(
    "piece", ["*", "_", "`", "[", "![", "](", "**a", "~~", "<", "> ", "- ", "|", "#", "\\", "http://", "`a", "\t"]
)
def test_markdown_costs_what_its_length_costs(blank: Page, piece: str) -> None:
    timed = "const begin = performance.now(); m.markdown(given); return performance.now() - begin;"

    assert run(blank, "markdown", timed, piece * (60_000 // len(piece))) < 1500


def test_heights_agree_with_the_sum_of_what_was_measured(blank: Page) -> None:
    body = """
        const heights = new m.Heights(70);
        const plain = [];
        let seed = 1;
        const random = (most) => { seed = (seed * 48271) % 2147483647; return seed % most; };
        const faults = [];
        for (let step = 0; step < 400; step += 1) {
            if (step % 40 === 0) {
                const size = random(3000);
                const keep = Math.min(random(3000), size, plain.length);
                heights.resize(size, keep);
                plain.length = keep;
                while (plain.length < size) plain.push(70);
            }
            if (!plain.length) continue;
            const index = random(plain.length);
            const height = 10 + random(500);
            heights.set(index, height);
            plain[index] = height;
            const top = plain.slice(0, index).reduce((sum, one) => sum + one, 0);
            if (heights.top(index) !== top) faults.push(["top", index, heights.top(index), top]);
            if (heights.at(top + 5) !== index) faults.push(["at", index, heights.at(top + 5)]);
        }
        return faults;
    """

    assert [] == run(blank, "heights", body)


def test_an_answer_that_a_change_overtook_fills_holes_only(blank: Page) -> None:
    body = """
        const pages = new m.Pages();
        const answer = (from, items) => ({id: "0.6", generation: 0, nextOffset: 6, total: 6, from, items});
        pages.fill(answer(0, ["a0", "a1"]));
        const late = answer(2, ["a2", "a3", "a4", "a5"]);
        const head = {id: "1.5", generation: 1, nextOffset: 5};
        pages.change({...head, keep: 3, total: 5, items: ["b3", "b4"], replaced: [[1, "b1", 1]]});
        pages.fill(late);
        return Array.from({length: 7}, (_, at) => pages.at(at)?.item ?? null);
    """

    assert ["a0", "b1", "a2", "b3", "b4", None, None] == run(blank, "pages", body)


def test_a_drawing_keeps_nothing_that_could_run_or_fetch(blank: Page) -> None:
    begin, end = '<svg xmlns="http://www.w3.org/2000/svg" data-offset="3"', '<g class="k"><title>n</title></g></svg>'
    svg = (
        f'{begin} onload="x()"><style>*{{fill:url(https://x.example)}}</style><script>x()</script>'
        '<a href="https://x.example"><text>t</text></a><rect style="fill:red" fill="url(#a)" width="1"/>'
        '<image href="https://x.example/i"/><foreignObject><b/></foreignObject><use href="#a"/>'
        f'<animate attributeName="href" to="javascript:x()"/>{end}'
    )
    kept = run(blank, "svg_check", "return m.checkedSvg(given).outerHTML;", svg)

    assert f'{begin}><rect width="1"/>{end}' == kept.replace("></rect>", "/>")
    assert run(blank, "svg_check", "return m.checkedSvg('<html><b>no</b></html>');") is None


def test_json_keeps_every_digit_and_what_cannot_be_seen(blank: Page) -> None:
    value = {
        "big": -(2**80),
        "small": 1,
        "float": 0.1,
        "text": "\u202e\x7f\U000e0041\u2028 12345678901234567890",
        "__proto__": 1,
    }
    body = "const t = await import('/static/text.js'); return t.plainJson(m.jsonText(m.parseJson(given)));"
    text = run(blank, "json_text", body, json.dumps(value))

    assert value == json.loads(text)
    assert all(character.isprintable() or character == "\n" for character in text)


def test_an_edit_is_told_by_its_lines(blank: Page) -> None:
    body = "return [...m.editView(...given).querySelectorAll('.diff-line')].map((line) => line.textContent);"

    assert [" a", "-b", "+B", " c", "+d"] == run(blank, "diff", body, ["a\nb\nc", "a\nB\nc\nd"])


STAGED = """
    const {el} = await import("/static/dom.js");
    const staged = (list) => {
        const frames = async (number) => {
            for (let at = 0; at < number; at += 1) await new Promise(requestAnimationFrame);
        };
        const stage = el("div", {class: "stage"}, list.element);
        Object.assign(stage.style, {position: "fixed", inset: "0", height: "600px"});
        document.body.append(stage);
        return {frames, stage};
    };
"""


def test_a_list_of_a_million_rows_reaches_every_one(blank: Page) -> None:
    body = """
        const list = new m.VirtualList({label: "Rows", row: (index) => {
            const row = el("article", {class: "row"}, `row ${index}`);
            row.style.height = `${30 + (index % 7) * 20}px`;
            return row;
        }});
        const {frames, stage} = staged(list);
        list.setCount(1_000_000, 0);
        await frames(2);
        const shown = () => [...list.element.querySelectorAll("article")].map((row) => Number(row.dataset.index))
            .filter((index) => list.topOf(index) + list.heights.of(index) > 0 && list.topOf(index) < list.view);
        const seen = {first: shown()[0]};
        list.go(765_432);
        await frames(2);
        seen.gone = shown()[0];
        list.element.scrollTop += 100;
        await frames(2);
        seen.moved = Math.round(-list.topOf(765_432));
        list.element.scrollTop = list.element.scrollHeight;
        await frames(2);
        seen.last = shown().at(-1);
        list.element.scrollTop = list.element.scrollHeight / 2;
        await frames(2);
        seen.middle = Math.round(shown()[0] / 100_000);
        seen.mounted = list.mounted.size < 60;
        list.close();
        stage.remove();
        return seen;
    """
    wanted = {"first": 0, "gone": 765_432, "moved": 100, "last": 999_999, "middle": 5, "mounted": True}

    assert wanted == run(blank, "virtual_list", STAGED + body)


def test_a_reader_stays_where_he_is_while_rows_above_grow(blank: Page) -> None:
    body = """
        let tall = 20;
        const list = new m.VirtualList({label: "Rows", row: (index) => {
            const row = el("article", {class: "row"}, `row ${index}`);
            row.style.height = `${index < 500 ? tall : 50}px`;
            return row;
        }});
        const {frames, stage} = staged(list);
        list.setCount(1000, 0);
        list.go(500, 40);
        await frames(3);
        const before = list.topOf(500);
        tall = 90;
        list.refresh(0, 500);
        await frames(3);
        const after = list.topOf(500);
        list.close();
        stage.remove();
        return [before, after];
    """
    before, after = run(blank, "virtual_list", STAGED + body)

    assert (40, 40) == (round(before), round(after))


WAITS = """
    const waits = [], fired = [];
    const after = globalThis.setTimeout;
    globalThis.setTimeout = (action, wait) => (waits.push(wait), fired.push(action), 1);
    const often = m.atMostEvery(() => given[waits.length], () => undefined);
    for (let turn = 0; turn < 2; turn += 1) {
        often();
        often();
        fired[turn]();
    }
    globalThis.setTimeout = after;
    return waits;
"""


def test_what_is_done_at_most_every_so_often_waits_as_long_as_it_is_told_each_time(blank: Page) -> None:
    assert [10, 700] == run(blank, "dom", WAITS, [10, 700])
