// Where the page gets what it shows: a server, or what was written into the page itself.

import {parseJson} from "./json_text.js";
import {EmbeddedSource} from "./embedded_source.js";

/** What the server answered instead of what was asked for: `status`, `kind`, a message and a hint. */
export class AnswerError extends Error {
  constructor(status, told) {
    super(told?.message ?? `the server answered ${status}`);
    this.status = status;
    this.kind = told?.kind ?? "";
    this.hint = told?.hint ?? "";
  }
}

/** The source of this page: embedded where the page carries its data, else the server that it came from. */
export function chooseSource() {
  const data = document.getElementById("incarnate-data");
  return data ? new EmbeddedSource(parseJson(data.textContent)) : new LiveSource();
}

const TROUBLE_WAIT = 2000; // milliseconds between two looks at a store that was in trouble
const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;

/** The server's answers and its changes. */
export class LiveSource {
  constructor() {
    this.embedded = false;
    this.onUnauthorized = () => undefined;
  }

  async get(path, query) {
    const asked = new URLSearchParams(Object.entries(query ?? {}).filter(([, value]) => value !== null && value !== undefined && value !== ""));
    const answer = await reached(fetch(`${path}${asked.size ? `?${asked}` : ""}`, { credentials: "same-origin" }));
    const text = await reached(answer.text());
    if (answer.ok) return parseJson(text);
    if (answer.status === 401) this.onUnauthorized();
    throw new AnswerError(answer.status, toldBy(text));
  }

  sessions(query) {
    return this.get("/api/sessions", query);
  }

  session(key) {
    return this.get(sessionPath(key));
  }

  messages(key, view, from, limit) {
    return this.get(`${sessionPath(key)}/messages`, { view, from, limit });
  }

  whole(key, view, index) {
    return this.get(`${sessionPath(key)}/messages`, { view, from: index, limit: 1, full: 1 });
  }

  find(key, query) {
    return this.get(`${sessionPath(key)}/find`, query);
  }

  stats(key) {
    return this.get(`${sessionPath(key)}/stats`);
  }

  rewinds(key) {
    return this.get(`${sessionPath(key)}/rewinds`);
  }

  superseded(key, generation, from, limit) {
    return this.get(`${sessionPath(key)}/superseded/${generation}`, { from, limit });
  }

  timeline(key, width) {
    return this.get(`${sessionPath(key)}/timeline`, { width });
  }

  async signIn(token) {
    const answer = await reached(fetch("/api/sign-in", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }), credentials: "same-origin" }));
    if (!answer.ok) throw new AnswerError(answer.status, toldBy(await answer.text()));
  }

  /** Follow a view from the id that `id()` gives; `hooks`: `change`, `state`, `gone`, `failed`. */
  changes(key, view, id, hooks) {
    const url = () => `${sessionPath(key)}/changes?${new URLSearchParams({ view, after: id() ?? "" })}`;
    const probe = () => this.session(key);
    const heard = { change: (data) => hooks.change(data), gone: () => hooks.gone() };
    return new Stream(url, probe, heard, hooks);
  }

  /** Follow the list; `hooks`: `sessions`, `state`, `failed`. */
  sessionChanges(hooks) {
    const probe = () => this.sessions({ limit: 1 });
    return new Stream(() => "/api/sessions/changes", probe, { sessions: (data) => hooks.sessions(data) }, hooks);
  }
}

// A browser says "Failed to fetch" of a server that is not there.
async function reached(coming) {
  try {
    return await coming;
  } catch {
    throw new AnswerError(0, { kind: "unreachable", message: "The studio's server does not answer.", hint: "it is asked again as soon as it is back" });
  }
}

function sessionPath(key) {
  return `/api/sessions/${encodeURIComponent(key)}`;
}

function toldBy(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return null;
  }
}

// Server-sent events that come back by themselves. A browser resumes a broken connection with the last id; where it
// gives up (an answer that is no stream), the reason is asked for, and if it passes, a new stream begins at the id.
class Stream {
  constructor(url, probe, heard, hooks) {
    Object.assign(this, { url, probe, heard, hooks, wait: FIRST_WAIT, timer: 0, closed: false });
    this.connect();
  }

  connect() {
    this.events = new EventSource(this.url());
    this.events.onopen = () => {
      this.wait = FIRST_WAIT;
      this.hooks.state("connected");
    };
    this.events.onerror = () => this.broke();
    this.events.addEventListener("trouble", (event) => this.troubled(toldBy(event.data)));
    for (const [name, take] of Object.entries(this.heard)) {
      this.events.addEventListener(name, (event) => {
        if (name === "gone") this.close();
        else this.calm();
        take(event.data ? parseJson(event.data) : null);
      });
    }
  }

  // The stream stays open and says no more until something changes: that the store is back has to be looked for.
  troubled(told) {
    if (this.closed) return;
    this.hooks.state("trouble", new AnswerError(503, told));
    clearTimeout(this.looking);
    this.looking = setTimeout(() => this.look(), TROUBLE_WAIT);
    this.isTroubled = true;
  }

  async look() {
    try {
      await this.probe();
      this.calm();
    } catch (error) {
      if (!this.closed && this.isTroubled && error.status !== 404) this.looking = setTimeout(() => this.look(), TROUBLE_WAIT);
    }
  }

  calm() {
    if (!this.isTroubled || this.closed) return;
    this.isTroubled = false;
    clearTimeout(this.looking);
    this.hooks.state("connected");
  }

  broke(error = null) {
    if (this.closed) return;
    if (error?.status === 503) this.hooks.state("trouble", error); // the server is there, its store is not
    else this.hooks.state("reconnecting");
    if (this.events.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.again(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
  }

  async again() {
    try {
      await this.probe();
      if (!this.closed) this.connect();
    } catch (error) {
      if (this.closed) return;
      if (error.status === 404) this.heard.gone?.();
      else if (error.status === 401) this.hooks.failed(error);
      else this.broke(error);
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    clearTimeout(this.looking);
    this.events.close();
  }
}
