// Where the page begins.

import {App} from "./app.js";
import {chooseSource} from "./source.js";

const studio = new App(chooseSource(), document.getElementById("app"));
studio.start();
