// The whole page: the list beside the session that was picked, what holds at the top, and the keys.

import {button, el, fill} from "./dom.js";
import {plain} from "./text.js";
import {notify} from "./copy.js";
import {helpDialog} from "./help.js";
import {Router} from "./router.js";
import {SessionsList} from "./sessions_list.js";
import {SessionView} from "./session_view.js";
import {signInForm} from "./sign_in.js";
import {SignOut} from "./sign_out.js";
import {themeSwitch} from "./theme.js";

const UNSEEN_AFTER = 2000; // a hidden page lets its stream go then: a browser has six connections to a server

/** The page of a source, put into an element. */
export class App {
  constructor(source, root) {
    this.source = source;
    this.root = root;
    this.session = null;
    this.state = this.state.bind(this);
    this.failed = this.failed.bind(this);
    this.router = new Router(source.embedded ? source.data.session.key : null, (place) => this.show(place));
    this.list = source.embedded ? null : new SessionsList(this);
    this.connection = el("span", { class: "connection", role: "status" });
    this.trouble = el("div", { class: "trouble", role: "alert", hidden: true });
    this.main = el("main", { id: "main", tabindex: "-1" });
    this.help = helpDialog(source.embedded);
    this.signOut = source.embedded ? null : new SignOut(source, this.failed);
    source.onUnauthorized = () => this.askForToken();
  }

  async start() {
    const skip = el("a", { class: "skip", href: "#main", click: (press) => this.skip(press) }, "Skip to the session");
    const top = el("header", { class: "top" }, el("h1", null, this.home()), this.connection, el("span", { class: "spring" }), this.signOut?.element, themeSwitch(), button("?", () => this.help.showModal(), { class: "quiet", "aria-label": "Keys", title: "Keys (?)" }));
    fill(this.root, skip, top, this.trouble, el("div", { class: "stage-all" }, this.list?.element, this.main), this.help);
    document.addEventListener("keydown", (press) => this.pressed(press));
    document.addEventListener("visibilitychange", () => this.looked());
    await this.begin();
  }

  async begin() {
    try {
      await this.list?.open();
      await this.show(this.router.place());
      await this.signOut?.ask();
    } catch (error) {
      this.failed(error);
    }
    if (document.hidden) this.looked(); // a tab that was opened behind another one
  }

  home() {
    return this.source.embedded ? "incarnate" : el("a", { href: "/", click: (press) => this.follow(press, { key: null }) }, "incarnate ", el("span", null, "studio"));
  }

  skip(press) {
    press.preventDefault();
    (this.main.querySelector(".session-key") ?? this.main).focus();
  }

  /** A press on a link of ours: the page goes there by itself, unless another tab was asked for. */
  follow(press, place) {
    if (press.metaKey || press.ctrlKey || press.shiftKey) return;
    press.preventDefault();
    this.router.go(place);
  }

  async show(place) {
    if (this.asking) return; // whoever signs in is brought there
    const isLeft = () => place.key !== null && this.session?.key !== place.key;
    this.root.classList.toggle("in-session", place.key !== null);
    this.list?.mark(place.key);
    try {
      if (place.odd) notify("The address names no offset that a log could have.", 6000);
      if (place.key === null) this.showNothing(place.unknown);
      else await this.showSession(place);
      if (!isLeft() && !this.session?.closed) this.recovered();
    } catch (error) {
      if (isLeft()) return;
      if (error.status === 404 && this.session && !this.session.row) this.showMissing(place.key);
      else this.failed(error);
    }
  }

  showNothing(unknown = false) {
    this.session?.close();
    this.session = null;
    this.state("");
    document.title = "incarnate studio";
    if (unknown) {
      fill(this.main, el("div", { class: "welcome", role: "alert" }, el("p", null, "There is nothing at this address."), el("p", null, el("a", { href: "/", click: (press) => this.follow(press, { key: null }) }, "All sessions"))));
      return;
    }
    fill(this.main, el("div", { class: "welcome" }, el("p", null, "Pick a session to watch it."), el("p", { class: "muted" }, "Press ", el("kbd", null, "?"), " for the keys.")));
  }

  async showSession(place) {
    if (this.session?.key !== place.key || this.session.closed || this.session.isGone) {
      this.session?.close();
      this.session = new SessionView(this, place.key);
      fill(this.main, this.session.element);
    }
    await this.session.show(place.tab, place.at);
  }

  showMissing(key) {
    fill(this.main, el("div", { class: "welcome", role: "alert" }, el("p", null, "The store holds no session ", el("code", null, plain(key)), "."), el("p", { class: "muted" }, "It may have been swept, or its key reads otherwise.")));
    this.session = null;
  }

  /** A row that the list heard of. */
  heard(row) {
    if (this.session?.key === row.key) this.session.heard(row);
  }

  heardGone(key) {
    if (this.session?.key === key) this.session.gone();
  }

  /** The list as a whole does not have the session that is shown: it was swept while nobody listened, or is newer. */
  heardMissing(missing) {
    if (this.session?.row && missing(this.session.row)) this.session.check();
  }

  /** How the connection is: shown small, read out when it changes. */
  state(word, problem = null) {
    const told = { connected: "connected", reconnecting: "reconnecting…", trouble: "waiting for the store…", exported: "exported", "": "" };
    this.connection.textContent = told[word] ?? word;
    this.connection.dataset.state = word;
    if (word === "trouble" && problem) this.failed(problem);
    if (word === "connected" && this.isOfLine) this.recovered();
  }

  /** The same of the list, where no view of a session says it. */
  listState(word, problem = null) {
    const before = this.listWord;
    this.listWord = word;
    if (this.session?.panel?.view) return;
    this.state(word === "connected" && !this.session ? "" : word, problem);
    if (word === "connected" && before !== word && this.session?.closed) this.begin(); // what could not be loaded
  }

  /** What is known of the connection as a panel begins: a view of its own tells it anew. */
  stateOf(panel) {
    if (this.source.embedded) this.state("exported");
    else this.state(panel.view ? "" : (this.listWord ?? ""));
  }

  failed(error) {
    if (error.status === 401) return;
    console.warn(error);
    this.isOfLine = error.status === 0 || error.status === 503; // over once the stream is there; a damaged log stays so
    const retry = button("Try again", () => {
      this.trouble.hidden = true;
      this.begin();
    });
    fill(this.trouble, plain(error.message), error.hint ? ` (${plain(error.hint)})` : "", " ", this.source.embedded ? null : retry);
    this.trouble.hidden = false;
  }

  recovered() {
    this.trouble.hidden = true;
  }

  askForToken() {
    if (this.asking) return;
    this.asking = true;
    this.session?.close();
    this.session = null;
    this.list?.pause();
    this.root.classList.add("signed-out");
    this.signOut.element.hidden = true;
    fill(this.main, signInForm(this.source, () => {
      this.asking = false;
      this.root.classList.remove("signed-out");
      fill(this.main);
      this.begin();
    }));
    document.getElementById("token").focus();
  }

  looked() {
    clearTimeout(this.unseen);
    const parts = [this.list, this.session].filter(Boolean);
    if (document.hidden) this.unseen = setTimeout(() => parts.forEach((part) => part.pause()), UNSEEN_AFTER);
    else if (!this.asking) parts.forEach((part) => part.resume());
  }

  pressed(press) {
    if (press.metaKey || press.ctrlKey || press.altKey || press.isComposing || press.defaultPrevented || this.help.open) return;
    const typing = press.target.closest?.("input, select, textarea");
    if (press.key === "Escape" && typing) press.target.blur();
    if (typing) return;
    if (this.key(press.key)) press.preventDefault();
  }

  key(name) {
    if (name === "?") {
      this.help.showModal();
      return true;
    }
    if (name === "s" && this.list) {
      this.list.input.focus();
      return true;
    }
    const tab = this.session?.tabs.names[Number(name) - 1];
    if (tab && /^[1-6]$/.test(name)) {
      this.session.choose(tab[0]);
      return true;
    }
    return this.session?.panel?.key?.(name) ?? false;
  }
}
