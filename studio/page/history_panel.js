// The history of a session's fence: who wrote, what was saved, what was rewound, and how to go on.

import {button, el, fill} from "./dom.js";
import {count, dayAndClock, timeTitle} from "./format.js";
import {copyText} from "./copy.js";
import {jsonTree} from "./json_tree.js";
import {plain} from "./text.js";
import {offsetLink} from "./rows_panel.js";

/** The panel of incarnations, checkpoints and rewinds. */
export class HistoryPanel {
  constructor(place) {
    this.place = place;
    this.about = { href: (at) => place.router.href({ key: place.key, at }), go: (at) => place.router.go({ key: place.key, at }) };
    this.asked = 0;
    this.element = el("div", { class: "panel scrolls", tabindex: "0", role: "region", "aria-label": "History" });
  }

  async open() {
    const { source, key } = this.place;
    this.asked += 1;
    const turn = this.asked;
    const [session, rewinds] = await Promise.all([source.session(key), source.rewinds(key)]);
    if (turn === this.asked) this.draw(session, rewinds);
  }

  // What somebody opened is not closed under their eyes, and the place where they read stays.
  draw(session, rewinds) {
    this.opened = new Set([...this.element.querySelectorAll("details[open]")].map((one) => one.closest("[data-checkpoint]")?.dataset.checkpoint));
    const { scrollTop } = this.element;
    const focused = document.activeElement?.closest?.(".table")?.getAttribute("aria-label");
    fill(this.element, el("div", { class: "columns" }, this.resume(session.resume), this.incarnations(session), this.checkpoints(session), this.rewinds(rewinds)));
    this.element.scrollTop = scrollTop;
    if (focused) this.element.querySelector(`.table[aria-label="${focused}"]`)?.focus({ preventScroll: true });
  }

  resume(argv) {
    if (!argv?.length) return null;
    const line = argv.map(quoted).join(" ");
    return section("How to go on", el("div", { class: "code-block" }, el("div", { class: "code-head" }, el("span", null, "shell"), button("Copy", () => copyText(line, "Command"))), el("pre", { tabindex: "0", role: "group", "aria-label": "Command" }, plain(line))));
  }

  incarnations(session) {
    const history = session.history ?? [];
    const rows = history.map((one) => [count(one.incarnation), this.link(one.start), one.stop > one.start ? this.link(one.stop - 1) : "", count(one.stop - one.start)]);
    for (const one of silentWriters(session)) rows.push([count(one), el("span", { class: "muted" }, "nothing"), "", "0"]);
    const fence = session.incarnation === null ? "Nobody has taken this session." : `The fence stands at incarnation ${session.incarnation}: a writer below it is refused.`;
    return section("Incarnations", el("p", null, fence), tableOf("Incarnations", ["Incarnation", "First", "Last", "Events"], rows, "No event yet."));
  }

  checkpoints(session) {
    const latest = session.latestCheckpoint?.id;
    const rows = (session.checkpoints ?? []).toReversed().map((one) => [
      [this.link(one.offset), one.id === latest ? el("span", { class: "chip ok" }, "latest") : null],
      el("code", null, plain(one.commitSha.slice(0, 12))),
      count(one.incarnation),
      timeOf(one),
      one.effectLedger.length ? el("div", { "data-checkpoint": one.id }, jsonTree(one.effectLedger, this.opened.has(one.id))) : el("span", { class: "muted" }, "none"),
    ]);
    return section("Checkpoints", tableOf("Checkpoints", ["Offset", "Commit", "Incarnation", "At", "Effects"], rows, "No checkpoint yet: a restore would begin at offset 0."));
  }

  rewinds(rewinds) {
    const rows = rewinds.toReversed().map((one) => [count(one.generation), this.link(one.cut), count(one.head - one.cut), count(one.incarnation), timeOf(one), one.swept ? el("span", { class: "muted" }, "swept") : this.tail(one)]);
    return section("Rewinds", tableOf("Rewinds", ["Generation", "Cut", "Superseded", "By", "At", "Tail"], rows, "Never rewound."));
  }

  link(offset) {
    return offsetLink(offset, this.about);
  }

  tail(rewind) {
    const { router, key } = this.place;
    const where = { key, tab: "superseded", at: rewind.cut };
    return el("a", { href: router.href(where), "aria-label": `Tail of rewind ${rewind.generation}`, click: (press) => {
      press.preventDefault();
      router.go(where);
    } }, "show");
  }

  updated() {
    this.open().catch(this.place.failed);
  }

  close() {}
}

// Who took the session and wrote nothing that stands: known by the fence and by the checkpoints alone.
function silentWriters(session) {
  const known = [session.incarnation, ...(session.checkpoints ?? []).map((one) => one.incarnation)].filter((one) => one !== null);
  const wrote = new Set((session.history ?? []).map((one) => one.incarnation));
  return [...new Set(known)].filter((one) => !wrote.has(one)).sort((one, other) => one - other);
}

function timeOf(one) {
  return el("time", { datetime: one.at, title: timeTitle(one.at) }, dayAndClock(one.at));
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function section(name, ...content) {
  return el("section", null, el("h3", null, name), content);
}

/** A table with a head; `none` stands where it has no rows. */
export function tableOf(name, head, rows, none) {
  if (!rows.length) return el("p", { class: "muted" }, none);
  const cells = (row) => row.map((cell) => el("td", null, cell));
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": name }, el("table", null, el("thead", null, el("tr", null, head.map((cell) => el("th", { scope: "col" }, cell)))), el("tbody", null, rows.map((row) => el("tr", null, cells(row))))));
}
