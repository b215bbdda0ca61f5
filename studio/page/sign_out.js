// The way out, where the server asks for a token.

import {button} from "./dom.js";

const CHANNEL = "incarnate-signed-out";

/** A button that signs this browser out, in all of its windows; hidden until `show(needed)` says that there is a token. */
export class SignOut {
  constructor(source, failed) {
    this.source = source;
    this.element = button("Sign out", () => this.press().catch(failed), { class: "quiet", hidden: true });
    this.others = new BroadcastChannel(CHANNEL);
    this.others.onmessage = () => location.reload();
  }

  /** Ask whether there is anything to sign out of. */
  async ask() {
    this.element.hidden = !(await this.source.signedIn()).needed;
  }

  // A page that is loaded anew holds nothing of what was shown, and asks for the token.
  async press() {
    await this.source.signOut();
    this.others.postMessage("out");
    location.reload();
  }
}
