// Addresses: which session, which place in it, which tab. A server's page has paths, an exported one has a hash.

const SESSION_PATH = /^\/s\/([^/]+)(?:\/at\/([^/]*))?\/?$/;

/** Reads and writes the address. A place is `{key, at, tab}`; `key` is null on the list.
 * `odd` says that its offset is none, `unknown` that it is no place of ours. */
export class Router {
  constructor(embedded, onMove) {
    this.embedded = embedded;
    this.onMove = onMove;
    window.addEventListener("popstate", () => this.onMove(this.place()));
    if (embedded) window.addEventListener("hashchange", () => this.onMove(this.place()));
  }

  place() {
    const hash = new URLSearchParams(location.hash.slice(1));
    if (this.embedded) return { key: this.embedded, at: numberOf(hash.get("at")), tab: hash.get("tab") ?? "transcript", odd: isOdd(hash.get("at")) };
    const match = SESSION_PATH.exec(location.pathname);
    const tab = new URLSearchParams(location.search).get("tab") ?? "transcript";
    const at = match?.[2] ?? null;
    return { key: match ? decoded(match[1]) : null, at: numberOf(at), tab, odd: isOdd(at), unknown: !match && location.pathname !== "/" };
  }

  /** The address of a place, from the root of this page. */
  href({ key, at = null, tab = "transcript" }) {
    if (this.embedded) {
      const hash = new URLSearchParams();
      if (at !== null) hash.set("at", String(at));
      if (tab !== "transcript") hash.set("tab", tab);
      return `#${hash}`;
    }
    if (key === null) return "/";
    return `/s/${encodeURIComponent(key)}${at === null ? "" : `/at/${at}`}${tab === "transcript" ? "" : `?tab=${encodeURIComponent(tab)}`}`;
  }

  /** Go to a place, so that the browser's way back leads here again. */
  go(place) {
    history.pushState(null, "", this.href(place));
    this.onMove(this.place());
  }

  /** Note a place without moving. */
  note(place) {
    history.replaceState(null, "", this.href(place));
  }
}

function isOdd(text) {
  return text !== null && numberOf(text) === null;
}

function numberOf(text) {
  return text !== null && /^\d{1,16}$/.test(text) ? Number(text) : null;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
