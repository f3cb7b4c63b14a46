/** An input that completes names as they are typed: the combobox pattern of WAI-ARIA. */

import { announce, count, h, newId, shorten, show } from "./dom.js";

const DELAY = 90; // milliseconds without a key before names are searched

/**
 * @typedef {object} Found
 * @property {string} name
 * @property {number} [facts]
 */

/**
 * @param {object} options
 * @param {string} options.label
 * @param {string} [options.placeholder]
 * @param {string} [options.kind] node or relation: a class for its colour
 * @param {(text: string, signal: AbortSignal) => Promise<Found[]>} options.find
 * @param {(name: string) => void} options.choose called with a chosen or typed name; "": cleared
 */
export function combobox({ label, placeholder = "", kind = "node", find, choose }) {
  const id = newId("combobox");
  const list = h("ul", { id: `${id}-list`, role: "listbox", "aria-label": label, hidden: true });
  const clear = h("button", { type: "button", class: "clear", "aria-label": `Clear ${label}` }, "×");
  const input = h("input", {
    id,
    type: "text",
    role: "combobox",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    placeholder,
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": list.id,
  });
  const element = h(
    "div",
    { class: `field ${kind}` },
    h("label", { for: id }, label),
    h("div", { class: "box" }, input, clear, list),
  );
  let found = [];
  let active = -1;
  let pending = null; // the search that is under way
  let timer = 0;

  const mark = () => (clear.hidden = !input.value);
  mark();

  function close() {
    clearTimeout(timer);
    pending?.abort();
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function activate(index) {
    active = index;
    [...list.children].forEach((option, i) => {
      option.setAttribute("aria-selected", String(i === active));
      if (i === active) option.scrollIntoView({ block: "nearest" });
    });
    if (active < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", `${id}-${active}`);
  }

  function pick(name) {
    input.value = name;
    mark();
    close();
    choose(name);
  }

  function option({ name, facts }, index) {
    return h(
      "li",
      {
        id: `${id}-${index}`,
        role: "option",
        "aria-selected": "false",
        on: {
          pointerdown: (event) => event.preventDefault(), // the input keeps the focus
          click: () => pick(name),
        },
      },
      h("span", {}, shorten(name, 100)),
      facts !== undefined && h("small", {}, count(facts, "fact")),
    );
  }

  async function search() {
    pending?.abort();
    const mine = (pending = new AbortController());
    try {
      found = await find(input.value.trim(), mine.signal);
    } catch (error) {
      if (error.name !== "AbortError") close(); // the name may still be typed in full
      return;
    }
    if (mine.signal.aborted || document.activeElement !== input) return;
    show(list, found.map(option));
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    activate(-1);
    announce(found.length ? count(found.length, "suggestion") : "No suggestion");
  }

  const searchSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(search, DELAY);
  };

  const keys = {
    ArrowDown: () => (list.hidden ? search() : activate((active + 1) % found.length)),
    ArrowUp: () => (list.hidden ? search() : activate((active <= 0 ? found.length : active) - 1)),
    Escape: () => (list.hidden ? pick("") : close()),
    Enter: () => pick(active >= 0 ? found[active].name : input.value.trim()),
  };
  input.addEventListener("keydown", (event) => {
    if (event.isComposing || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  input.addEventListener("input", () => {
    mark();
    searchSoon();
  });
  input.addEventListener("click", () => list.hidden && search());
  input.addEventListener("blur", close);
  clear.addEventListener("click", () => {
    pick("");
    input.focus();
  });

  return {
    element,
    input,
    get value() {
      return input.value.trim();
    },
    set value(name) {
      input.value = name;
      mark();
    },
  };
}

/** Completes names of nodes on the server. */
export const findNodes = (api) => (text, signal) => api.search(text, 12, signal);

/** Completes names of relations, which are fetched once. */
export const findRelations = (api) => async (text) => {
  const part = text.toLowerCase();
  const matches = (await api.relations()).filter(({ name }) => name.toLowerCase().includes(part));
  const starts = ({ name }) => Number(!name.toLowerCase().startsWith(part));
  return matches.sort((a, b) => starts(a) - starts(b)).slice(0, 50);
};
