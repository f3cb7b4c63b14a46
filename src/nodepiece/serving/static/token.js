/** The token of a server that asks for one. */

import { setToken } from "./api.js";
import { h } from "./dom.js";

/** A form for the token, which is kept until the page is closed; `again` repeats the request. */
export function tokenForm(again) {
  const field = h("input", { type: "password", autocomplete: "off", "aria-label": "Token" });
  const use = (event) => {
    event.preventDefault();
    setToken(field.value);
    again();
  };
  return h("form", { class: "token", on: { submit: use } }, field, h("button", { type: "submit" }, "Use this token"));
}
