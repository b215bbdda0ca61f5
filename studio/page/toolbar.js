// The line above a transcript: search, kinds, and what may be switched.

import {button, el, quietly} from "./dom.js";
import {count} from "./format.js";

const KINDS = [
  ["Prompts", ["user"]],
  ["Answers", ["assistant"]],
  ["Thoughts", ["reasoning"]],
  ["Calls", ["tool-call"]],
  ["Results", ["tool-result"]],
  ["Turns", ["turn-start", "turn-end"]],
  ["Tokens", ["usage"]],
  ["System", ["system", "compaction"]],
];

/** @param hooks `live` (whether the session may grow); `search(text)`, `step(direction)`, `kinds(list)`, `only(on)`, `raw(on)`, `follow(on)`. */
export class Toolbar {
  constructor(hooks) {
    this.hooks = hooks;
    this.chosen = new Set();
    this.input = el("input", { type: "search", placeholder: "Search this session", "aria-label": "Search this session", autocomplete: "off", spellcheck: "false", input: quietly(180, () => hooks.search(this.input.value)), keydown: (press) => this.pressed(press) });
    this.told = el("span", { class: "found", role: "status" });
    this.before = button("↑", () => hooks.step(-1), { "aria-label": "Previous match", title: "Previous match (N)", hidden: true });
    this.after = button("↓", () => hooks.step(1), { "aria-label": "Next match", title: "Next match (n)", hidden: true });
    this.only = this.toggle("Only matches", (on) => hooks.only(on));
    this.only.hidden = true;
    this.raw = this.toggle("Raw", (on) => hooks.raw(on), "Every event as its JSON (r)");
    this.followButton = this.toggle("Follow", (on) => hooks.follow(on), "Keep the end in sight (f)");
    this.element = el("div", { class: "toolbar" }, this.searchLine(), this.kindLine());
  }

  searchLine() {
    return el("div", { class: "tool-line", role: "search" }, this.input, this.told, this.before, this.after, this.only, el("span", { class: "spring" }), this.raw, this.hooks.live ? this.followButton : null);
  }

  kindLine() {
    const chips = KINDS.map(([name, types]) => this.toggle(name, (on) => this.choose(types, on)));
    return el("div", { class: "kinds", role: "group", "aria-label": "Show only" }, chips);
  }

  toggle(name, act, title) {
    const one = button(name, () => {
      const on = one.getAttribute("aria-pressed") !== "true";
      one.setAttribute("aria-pressed", String(on));
      act(on);
    }, { class: "toggle", "aria-pressed": "false", title });
    return one;
  }

  choose(types, on) {
    for (const type of types) if (on) this.chosen.add(type);
    else this.chosen.delete(type);
    this.hooks.kinds([...this.chosen]);
  }

  pressed(press) {
    if (press.isComposing) return; // these keys choose among the words of an input method
    if (press.key === "Enter") {
      this.hooks.search(this.input.value); // what was typed last may not have been asked yet
      this.hooks.step(press.shiftKey ? -1 : 1);
    }
    if (press.key !== "Escape") return;
    press.stopPropagation();
    if (this.input.value) {
      this.input.value = "";
      this.hooks.search("");
    } else this.hooks.leave();
  }

  /** Say how many matches there are, and at which one we are. */
  tell(matches, at) {
    const any = matches !== null;
    this.told.textContent = any ? (matches ? `${at >= 0 ? `${count(at + 1)} of ` : ""}${count(matches)}` : "no match") : "";
    for (const one of [this.before, this.after, this.only]) one.hidden = !any;
  }

  following(on) {
    this.followButton.setAttribute("aria-pressed", String(on));
  }
}
