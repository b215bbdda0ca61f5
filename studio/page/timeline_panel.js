// The timeline: the server's drawing, in which what stands for an event leads there.

import {atMostEvery, el, fill, quietly} from "./dom.js";
import {checkedSvg} from "./svg_check.js";

const NARROWEST = 320;
const LIVE_EVERY = 1500; // milliseconds between two drawings of a session that grows
const SHARE = 6; // and at least so many times as long as one takes: a long session's is half a second of the server

/** The panel of a session's timeline. */
export class TimelinePanel {
  constructor(place) {
    this.place = place;
    this.stage = el("div", { class: "drawing", tabindex: "0", role: "region", "aria-label": "Timeline" }, el("p", { class: "empty" }, "Drawing…"));
    this.element = el("div", { class: "panel timeline", click: (press) => this.press(press), keydown: (press) => press.key === "Enter" && this.press(press) }, this.stage);
    this.again = quietly(200, () => this.draw().catch(place.failed));
    this.took = 0;
    this.grew = atMostEvery(() => Math.max(LIVE_EVERY, SHARE * this.took), () => this.draw().catch(place.failed));
    this.asked = 0;
    this.observer = new ResizeObserver(() => this.width !== this.wanted() && this.again());
  }

  async open() {
    await this.draw();
    this.observer.observe(this.element);
  }

  wanted() {
    return Math.max(NARROWEST, Math.floor(this.element.clientWidth - 48));
  }

  async draw() {
    if (this.closed) return; // a timer's call
    this.width = this.wanted();
    this.asked += 1;
    const turn = this.asked;
    const begun = performance.now();
    const told = await this.place.source.timeline(this.place.key, this.width);
    this.took = performance.now() - begun;
    if (turn !== this.asked) return; // a later question was answered before
    const drawing = checkedSvg(told.svg);
    const { scrollLeft, scrollTop } = this.stage;
    const focused = this.stage.contains(document.activeElement) ? document.activeElement.getAttribute("data-offset") : null;
    fill(this.stage, drawing ?? el("p", { class: "empty" }, "The timeline could not be read."));
    this.nameLinks();
    this.stage.scrollTo(scrollLeft, scrollTop);
    if (focused !== null) [...this.stage.querySelectorAll("[data-offset]")].find((mark) => mark.dataset.offset === focused)?.focus({ preventScroll: true });
  }

  // What leads somewhere is a link to the eye; it is one to the keyboard too.
  nameLinks() {
    for (const mark of this.stage.querySelectorAll("[data-offset]")) {
      if (!mark.hasAttribute("role")) mark.setAttribute("role", "link");
      if (!mark.hasAttribute("tabindex")) mark.setAttribute("tabindex", "-1");
      if (!mark.hasAttribute("aria-label") && !mark.querySelector("title")) mark.setAttribute("aria-label", `Offset ${mark.dataset.offset}`);
    }
  }

  press(press) {
    const offset = Number(press.target.closest?.("[data-offset]")?.getAttribute("data-offset") ?? Number.NaN);
    if (!Number.isSafeInteger(offset) || offset < 0) return;
    press.preventDefault();
    this.place.router.go({ key: this.place.key, at: offset });
  }

  updated() {
    this.grew();
  }

  close() {
    this.closed = true;
    this.observer.disconnect();
  }
}
