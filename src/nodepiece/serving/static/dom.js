/** Elements built from data. Strings become text nodes, never markup. */

const isShown = (child) => child !== null && child !== undefined && child !== false;

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat(Infinity).filter(isShown));
  return element;
}

/** An HTML element; `attributes.on` has event handlers. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Replaces the content of an element. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(isShown));
}

/** A name of at most `length` characters, with an ellipsis in the place of its end. */
export function shorten(name, length = 80) {
  const characters = [...name];
  return characters.length <= length ? name : `${characters.slice(0, length - 1).join("")}…`;
}

/** Announces a sentence to screen readers. */
export function announce(sentence) {
  document.getElementById("live").textContent = sentence;
}

/** "1 fact", "2,345 facts". */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** A counter for ids that are unique in the page. */
let last = 0;
export const newId = (prefix) => `${prefix}-${++last}`;
