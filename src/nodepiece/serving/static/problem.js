/** Errors as sentences, with suggestions to choose from. */

import { announce, h, shorten } from "./dom.js";

/**
 * An alert for an error.
 * @param {Error} error
 * @param {(name: string) => string} [linkOf] the address that a suggested name leads to
 * @param {() => void} [retry]
 */
export function problem(error, linkOf, retry) {
  const suggestions = linkOf ? (error.suggestions ?? []) : [];
  const sentence = suggestions.length ? error.message.split("; did you mean")[0] : error.message;
  const isFinal = error.status >= 400 && error.status < 500; // the same request fails again
  announce(error.message);
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", {}, asSentence(shorten(sentence, 400))),
    suggestions.length > 0 &&
      h(
        "p",
        { class: "chips" },
        "Did you mean",
        suggestions.map((name) => h("a", { class: "chip", href: linkOf(name) }, shorten(name))),
      ),
    retry && !isFinal && h("button", { type: "button", on: { click: retry } }, "Try again"),
  );
}

/** With a capital letter, and a mark at the end. */
const asSentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.?!…]$/.test(text) ? "" : ".");

/** Whether an error only says that a newer request took the place of this one. */
export const isCancelled = (error) => error.name === "AbortError";
