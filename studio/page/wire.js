// The one stream of server-sent events that a page keeps: a browser has six connections to a server, for all its windows.

import {AnswerError, toldBy} from "./answer_error.js";
import {parseJson} from "./json_text.js";
import {Slot} from "./slot.js";

const TROUBLE_WAIT = 2000; // milliseconds between two looks at a store that was in trouble
const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;
const FOLLOWED_WAIT = 100; // the list is followed a moment before the view that is shown beside it
const QUIET_WAIT = 400; // without a slot the stream is let go when nothing came for so long, or this long after it began
const LONGEST_GLANCE = 2000;
const GLANCE_WAIT = 2000; // until it is looked into again
const LEFT_WAIT = 1000; // a view that nobody follows any more is most often followed by another one

/**
 * What a page follows: the list, and a view of one session. The stream comes back by itself. A browser resumes a broken
 * connection with the last id; where it gives up (an answer that is no stream), the reason is asked for, and if it
 * passes, a new stream begins at the ids of both.
 */
export class Wire {
  /** `probe()` and `probeSession(key)` ask the server for something, so that it tells what is wrong. */
  constructor(probe, probeSession) {
    Object.assign(this, { probe, probeSession, session: null, sessions: null, rowsId: "", events: null, wait: FIRST_WAIT, timer: 0, quiet: 0 });
    this.slot = new Slot();
  }

  /** Follow a view; gives what ends that by `close()`. `place`: `key`, `view`, and `id()`, from where. */
  followSession(place, hooks) {
    const follower = new Follower(hooks, () => this.probeSession(place.key), () => this.left("session", follower));
    this.session?.end();
    this.session = Object.assign(follower, { place });
    this.renew(0);
    return follower;
  }

  /** Follow the list, from the rows that were told last. */
  followSessions(hooks) {
    const follower = new Follower(hooks, this.probe, () => this.left("sessions", follower));
    this.sessions?.end();
    this.sessions = follower;
    this.renew(FOLLOWED_WAIT);
    return follower;
  }

  get followers() {
    return [this.session, this.sessions].filter(Boolean);
  }

  left(part, follower) {
    if (this[part] !== follower) return;
    this[part] = null;
    if (this.followers.length) this.renew(LEFT_WAIT);
    else {
      this.hangUp();
      this.slot.free();
    }
  }

  hangUp() {
    clearTimeout(this.timer);
    clearTimeout(this.quiet);
    this.events?.close();
    this.events = null;
  }

  renew(wait) {
    if (!wait) this.hangUp();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), wait);
  }

  url() {
    const { place } = this.session ?? {};
    const asked = { session: place?.key, view: place?.view, after: place?.id(), list: this.rowsId };
    return `/api/changes?${new URLSearchParams(Object.entries(asked).filter(([, value]) => value))}`;
  }

  connect() {
    this.hangUp();
    this.slot.want(() => this.keep());
    const { session, sessions } = this;
    this.events = new EventSource(this.url());
    this.events.onopen = () => {
      this.wait = FIRST_WAIT;
      this.began = Date.now();
      this.heard();
      for (const one of this.followers) one.tell("connected");
    };
    this.events.onerror = () => this.broke();
    this.on("change", (change) => session?.hear("change", change));
    this.on("gone", () => session?.leave("gone"));
    this.on("sessions", (change) => {
      this.rowsId = change.id;
      sessions?.hear("sessions", change);
    });
    this.events.addEventListener("trouble", (event) => session?.troubled(toldBy(event.data)));
    this.events.addEventListener("list-trouble", (event) => sessions?.troubled(toldBy(event.data)));
  }

  on(name, take) {
    this.events.addEventListener(name, (event) => {
      this.heard();
      take(parseJson(event.data));
    });
  }

  /** Without a slot: other windows want the connection as soon as nothing comes by it. */
  heard() {
    clearTimeout(this.quiet);
    if (this.slot.held) return;
    this.quiet = setTimeout(() => {
      this.hangUp();
      this.timer = setTimeout(() => this.connect(), GLANCE_WAIT);
    }, Math.max(0, Math.min(QUIET_WAIT, this.began + LONGEST_GLANCE - Date.now())));
  }

  /** A slot was free. */
  keep() {
    clearTimeout(this.quiet);
    if (!this.events) this.renew(0);
  }

  broke(error = null) {
    if (!this.events) return;
    // Of an error with 503 the server is there, its store is not.
    for (const one of this.followers) one.tell(error?.status === 503 ? "trouble" : "reconnecting", error);
    if (this.events.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.again(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
  }

  async again() {
    const { events } = this;
    try {
      await this.probe();
      if (events === this.events && events) this.connect();
    } catch (error) {
      if (events !== this.events) return;
      if (error.status === 401) for (const one of this.followers) one.hooks.failed(error);
      else this.broke(error);
    }
  }
}

/** Who follows a part of the stream. A part may be in trouble by itself: one session is damaged, the others are well. */
class Follower {
  constructor(hooks, probe, left) {
    Object.assign(this, { hooks, probe, left, ended: false, isTroubled: false, looking: 0 });
  }

  hear(name, data) {
    if (this.ended) return;
    this.calm();
    this.hooks[name](data);
  }

  tell(word, error = null) {
    if (!this.ended) this.hooks.state(word, error);
  }

  // The stream stays open and says no more until something changes: that the store is back has to be looked for.
  troubled(told) {
    if (this.ended) return;
    this.isTroubled = true;
    this.hooks.state("trouble", new AnswerError(503, told));
    this.lookLater();
  }

  lookLater() {
    clearTimeout(this.looking);
    this.looking = setTimeout(() => this.look(), TROUBLE_WAIT);
  }

  async look() {
    try {
      await this.probe();
      this.calm();
    } catch (error) {
      if (!this.ended && this.isTroubled && error.status !== 404) this.lookLater();
    }
  }

  calm() {
    if (!this.isTroubled || this.ended) return;
    this.isTroubled = false;
    clearTimeout(this.looking);
    this.hooks.state("connected");
  }

  /** End with a last word. */
  leave(name) {
    if (this.ended) return;
    this.close();
    this.hooks[name]();
  }

  end() {
    this.ended = true;
    clearTimeout(this.looking);
  }

  close() {
    if (this.ended) return;
    this.end();
    this.left();
  }
}
