// Where the page gets what it shows: a server, or what was written into the page itself.

import {parseJson} from "./json_text.js";
import {AnswerError, toldBy} from "./answer_error.js";
import {EmbeddedSource} from "./embedded_source.js";
import {Wire} from "./wire.js";

/** The source of this page: embedded where the page carries its data, else the server that it came from. */
export function chooseSource() {
  const data = document.getElementById("incarnate-data");
  return data ? new EmbeddedSource(parseJson(data.textContent)) : new LiveSource();
}

/** The server's answers and its changes. */
export class LiveSource {
  constructor() {
    this.embedded = false;
    this.onUnauthorized = () => undefined;
    this.wire = new Wire(() => this.sessions({ limit: 1 }), (key) => this.session(key));
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

  /** Whether one is signed in, and must be. */
  signedIn() {
    return this.get("/api/sign-in");
  }

  signIn(token) {
    return this.post("/api/sign-in", { token });
  }

  signOut() {
    return this.post("/api/sign-out", {});
  }

  async post(path, body) {
    const answer = await reached(fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), credentials: "same-origin" }));
    if (!answer.ok) throw new AnswerError(answer.status, toldBy(await answer.text()));
  }

  /** Follow a view from the id that `id()` gives; `hooks`: `change`, `state`, `gone`, `failed`. */
  changes(key, view, id, hooks) {
    return this.wire.followSession({ key, view, id }, hooks);
  }

  /** Follow the list; `hooks`: `sessions`, `state`, `failed`. */
  sessionChanges(hooks) {
    return this.wire.followSessions(hooks);
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
