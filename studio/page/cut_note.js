// What stands below an item that was cut for its size.

import {button, el} from "./dom.js";
import {bytes} from "./format.js";

/** How large it is in all, and a way to see that: `load` is null where there is none, as in an exported page. */
export function cutNote(full, load) {
  return el("div", { class: "cut-note" }, `Long texts were cut here: it has ${bytes(full)} in all. `, load ? button("Load it whole", load) : null);
}
