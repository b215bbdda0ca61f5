// Elements, built one way: attributes by name, text as text. Nothing in the page ever parses markup, so what a log
// says can only ever be shown.

/**
 * An element. A function among the attributes listens, `true` sets a bare attribute, null and false leave it out.
 * Children are nodes, strings, numbers, or lists of them.
 */
export function el(name, attributes, ...children) {
  const element = document.createElement(name);
  put(element, children); // before the attributes: under `dir="auto"` each child costs a look at all before it
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  return element;
}

/** Append children, lists of them included; null, undefined and false are nothing. */
export function put(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) put(parent, child);
    else parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return parent;
}

/** Replace what an element holds. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  return put(parent, children);
}

/** A button that does something; `attributes` may name a class, a label, a state. */
export function button(label, onclick, attributes) {
  return el("button", { type: "button", click: onclick, ...attributes }, label);
}

/** Call `action` `wait` milliseconds after the first of some calls, so that it comes however often they do; a function
 * tells how long that is each time. */
export function atMostEvery(wait, action) {
  let timer = 0;
  return () => {
    timer ||= setTimeout(() => {
      timer = 0;
      action();
    }, typeof wait === "function" ? wait() : wait);
  };
}

/** Call `action` once things have been quiet for `wait` milliseconds. */
export function quietly(wait, action) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
}
