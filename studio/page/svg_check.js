// A drawing from the server, taken in only as far as it is a drawing: known elements with known attributes, no links,
// no styles, nothing that runs or fetches. The server escapes already; this is the second lock on the door.

const SVG = "http://www.w3.org/2000/svg";
const ELEMENTS = new Set(["svg", "g", "rect", "line", "path", "circle", "ellipse", "polygon", "polyline", "text", "tspan", "title", "desc"]);
const ATTRIBUTES = new Set([
  "class", "id", "role", "tabindex", "viewBox", "width", "height", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "ry", "dx", "dy", "d", "points", "transform",
  "fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-size", "font-weight",
  "font-family", "font-style", "color", "text-anchor", "dominant-baseline", "preserveAspectRatio", "shape-rendering", "vector-effect", "xmlns", "textLength", "lengthAdjust", "paint-order",
]);
const NAMED = /^(?:data-[a-z-]+|aria-[a-z-]+)$/;
const REACHES_OUT = /url\s*\(|javascript:|expression\s*\(/i;

/** The drawing of an SVG text, with what was not allowed left out; null where it is no SVG. */
export function checkedSvg(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const root = parsed.documentElement;
  if (root.namespaceURI !== SVG || root.localName !== "svg" || parsed.querySelector("parsererror")) return null;
  return document.importNode(cleaned(root), true);
}

function cleaned(element) {
  for (const child of [...element.children]) {
    if (child.namespaceURI === SVG && ELEMENTS.has(child.localName)) cleaned(child);
    else child.remove();
  }
  for (const { name, value } of [...element.attributes]) {
    if (!(ATTRIBUTES.has(name) || NAMED.test(name)) || REACHES_OUT.test(value)) element.removeAttribute(name);
  }
  return element;
}
