/** How wide text is, for drawings. */

import { h, shorten, show } from "./dom.js";

const context = document.createElement("canvas").getContext("2d");

/** The width of a text in pixels, in the font of the page. */
export function textWidth(text, size = 13, weight = 400) {
  context.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return context.measureText(text).width;
}

/** A name without its middle: names of relations often differ only at their end. */
function withoutMiddle(letters, length) {
  if (letters.length <= length) return letters.join("");
  const end = Math.floor((length - 1) / 3);
  return `${letters.slice(0, length - 1 - end).join("")}…${letters.slice(letters.length - end).join("")}`;
}

/** As much of a name as fits into some pixels. */
export function fitText(name, pixels, size, weight) {
  const letters = [...shorten(name, 120)];
  const fits = (length) => textWidth(withoutMiddle(letters, length), size, weight) <= pixels;
  if (fits(letters.length)) return letters.join("");
  let [most, tooLong] = [2, letters.length];
  while (tooLong - most > 1) {
    const middle = Math.floor((most + tooLong) / 2);
    if (fits(middle)) most = middle;
    else tooLong = middle;
  }
  return withoutMiddle(letters, most);
}

/** An element with a drawing for its width, which is made again when the width changes. */
export function fitted(attributes, draw) {
  const place = h("div", attributes);
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (width === 0 || Math.abs(width - drawn) < 18) return; // a scroll bar: the drawing is scaled
    drawn = width;
    show(place, draw(width));
  }).observe(place);
  return place;
}
