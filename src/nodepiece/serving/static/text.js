/** How wide text is, for drawings. */

import { h, shorten, show } from "./dom.js";

const context = document.createElement("canvas").getContext("2d");

/** The width of a text in pixels, in the font of the page. */
export function textWidth(text, size = 13, weight = 400) {
  context.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return context.measureText(text).width;
}

/** As much of a name as fits into some pixels. */
export function fitText(name, pixels, size, weight) {
  let text = shorten(name, 120);
  if (textWidth(text, size, weight) <= pixels) return text;
  let [fits, tooLong] = [2, [...text].length];
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (textWidth(shorten(name, middle), size, weight) <= pixels) fits = middle;
    else tooLong = middle;
  }
  return shorten(name, fits);
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
