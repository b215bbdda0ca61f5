// Which windows of a browser keep their stream: it has six connections to a server, one of which is for questions.

const SLOTS = 5;

/**
 * A place among the windows that keep their stream. Who has none looks in now and then, until another window is closed
 * or hidden. A browser that has no locks to share (they want https, or this machine) gives one to everybody.
 */
export class Slot {
  constructor() {
    this.held = !navigator.locks;
    this.waiting = null;
    this.leave = () => undefined;
  }

  /** Have one as soon as one is free; `taken()` is called then. */
  want(taken) {
    if (this.held || this.waiting) return;
    const waiting = new AbortController();
    this.waiting = waiting;
    const take = () => {
      if (this.waiting !== waiting || this.held) return null;
      this.held = true;
      waiting.abort(); // the other four
      taken();
      return new Promise((done) => {
        this.leave = done;
      });
    };
    for (let number = 0; number < SLOTS; number += 1) {
      navigator.locks.request(`incarnate-stream-${number}`, { signal: waiting.signal }, take).catch(() => undefined);
    }
  }

  /** Leave it to another window. */
  free() {
    this.waiting?.abort();
    this.waiting = null;
    if (navigator.locks) this.held = false;
    this.leave();
  }
}
