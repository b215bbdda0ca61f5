// Images are named, never loaded: a picture in a log may be anything, and asking for it tells its owner that we look.

import {el} from "./dom.js";
import {plain} from "./text.js";
import {bytes} from "./format.js";

/** A chip that stands for an image: what it is called, and where it is or how big. */
export function imageChip(label, target) {
  const data = /^data:([\w.+-]+\/[\w.+-]+)/.exec(target.slice(0, 100));
  const told = data ? `${data[1]}, ${bytes(Math.floor(target.length * 0.75))}` : plain(target.slice(0, 120));
  return el("span", { class: "chip image", title: "An image, not loaded" }, el("span", { "aria-hidden": "true" }, "▣ "), data?.[1] === label ? null : `${plain(label.slice(0, 80))} `, el("span", { class: "muted" }, told));
}

/** The chip of a JSON value that is an image (as providers write them), else null. */
export function imageOf(value) {
  if (typeof value === "string") return value.startsWith("data:image/") ? imageChip("image", value) : null;
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  const source = own(value, "source");
  const data = own(value, "data") ?? (source && typeof source === "object" ? (own(source, "data") ?? own(source, "url")) : undefined);
  const media = own(value, "mimeType") ?? own(value, "media_type") ?? (source && typeof source === "object" ? own(source, "media_type") : undefined);
  const isImage = own(value, "type") === "image" || (typeof media === "string" && media.startsWith("image/"));
  if (!isImage || typeof data !== "string") return null;
  return imageChip(typeof media === "string" ? media : "image", /^https?:/.test(data) ? data : `data:${media ?? "image/unknown"};base64,${data}`);
}

function own(object, key) {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
