// Where the page begins.

import {App} from "./app.js";
import {el, fill} from "./dom.js";
import {chooseSource} from "./source.js";

const whole = document.getElementById("app");
try {
  new App(chooseSource(), whole).start();
} catch (error) { // of an exported page that was cut off on its way: nobody looks into the console
  console.warn(error);
  fill(whole, el("main", { class: "welcome", role: "alert" }, el("p", null, "This page cannot be shown: the session that it holds is damaged or cut off."), el("p", { class: "muted" }, "Export it again, or have it sent again.")));
}
