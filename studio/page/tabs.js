// Tabs, as a screen reader and a keyboard know them.

import {el} from "./dom.js";

/** @param names `[id, label]` of each; `choose(id)` is called when one is picked. */
export class Tabs {
  constructor(names, choose) {
    this.names = names;
    this.choose = choose;
    this.buttons = names.map(([id, label]) => el("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "tab-panel", "aria-selected": "false", tabindex: "-1", click: () => choose(id) }, label));
    this.element = el("div", { class: "tabs", role: "tablist", "aria-label": "Views of this session", keydown: (press) => this.pressed(press) }, this.buttons);
    this.panel = el("div", { class: "tab-panel", role: "tabpanel", id: "tab-panel" });
  }

  select(id) {
    this.selected = id;
    this.names.forEach(([name], at) => {
      this.buttons[at].setAttribute("aria-selected", String(name === id));
      this.buttons[at].tabIndex = name === id ? 0 : -1;
    });
    this.panel.setAttribute("aria-labelledby", `tab-${id}`);
    this.buttons[this.names.findIndex(([name]) => name === id)]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  pressed(press) {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    const here = this.buttons.indexOf(document.activeElement);
    const end = { Home: 0, End: this.buttons.length - 1 }[press.key];
    if (here < 0 || (!steps[press.key] && end === undefined)) return;
    press.preventDefault();
    const next = end ?? (here + steps[press.key] + this.buttons.length) % this.buttons.length;
    this.buttons[next].focus();
    this.choose(this.names[next][0]);
  }
}
