/** A drawing of a node and its pieces: anchors on rings by distance, relations on the other side. */

import { h, shorten, svg } from "./dom.js";
import { link } from "./route.js";
import { fitText, fitted, textWidth } from "./text.js";

/** The sizes of a drawing; a narrow one has rings that are higher than wide. */
function sizesFor(width) {
  const isNarrow = width < 460;
  const centre = Math.round(width * (isNarrow ? 0.44 : 0.42));
  const labels = isNarrow ? 100 : 160; // for the names on the outermost ring
  return {
    width,
    centre,
    widest: width - centre - labels,
    first: isNarrow ? 56 : 118,
    step: isNarrow ? 30 : 62,
    fan: isNarrow ? 44 : 88,
    row: isNarrow ? 27 : 31,
    size: isNarrow ? 12 : 13,
  };
}

/**
 * Radii of the rings, nearest first: each is high enough for its anchors and all nearer ones, one
 * row each, so that no two names are beside each other.
 */
function ringsOf(anchors, { first, step, widest, row }) {
  const distances = [...new Set(anchors.map(({ distance }) => distance))].sort((a, b) => a - b);
  let radius = first - step;
  return distances.map((distance, i) => {
    const inside = anchors.filter((anchor) => anchor.distance <= distance).length;
    radius = Math.max(radius + step, ((inside - 1) * row) / 2 / 0.93);
    const share = distances.length === 1 ? 0.8 : (i + 1) / distances.length;
    return { distance, x: Math.min(radius, widest * Math.max(share, 0.55)), y: radius };
  });
}

/** The rows of anchors from the middle outwards: 0, 1, -1, 2, -2, ..., shifted to be symmetric. */
function rowsOf(number, row) {
  const shift = number % 2 ? 0 : -0.5;
  return Array.from({ length: number }, (_, i) => {
    const place = Math.ceil(i / 2) * (i % 2 ? 1 : -1);
    return (place + shift) * row;
  });
}

const hopsText = (distance) => `${distance} ${distance === 1 ? "hop" : "hops"}`;

function drawAnchor({ name, distance }, ring, dy, size, middle) {
  const x = size.centre + ring.x * Math.sqrt(Math.max(0, 1 - (dy / ring.y) ** 2));
  const y = middle + dy;
  const away = distance === null ? "" : `, ${hopsText(distance)} away`;
  return {
    line: svg("line", { class: "spoke", x1: size.centre, y1: middle, x2: x, y2: y }),
    dot: svg(
      "a",
      { class: "anchor", href: link("node", { name }), "aria-label": `Anchor ${shorten(name)}${away}` },
      svg("title", {}, shorten(name, 200) + away),
      svg("circle", { class: "target", cx: x, cy: y, r: 12 }),
      svg("circle", { cx: x, cy: y, r: 6 }),
      svg("text", { x: x + 12, y: y + 4.5, "font-size": size.size }, fitText(name, size.width - x - 14, size.size)),
    ),
  };
}

function drawRelation(node, { name, inverse }, dy, reach, size, middle, canAsk) {
  const right = size.centre - size.fan * Math.sqrt(Math.max(0.15, 1 - (dy / reach) ** 2));
  const y = middle + dy;
  const text = fitText(name, right - 20, size.size);
  const width = textWidth(text, size.size) + 18;
  const about = inverse ? { relation: name, tail: node } : { head: node, relation: name };
  const near = { x: size.centre - 21, y: middle + (dy / reach) * 12 };
  const [from, to] = inverse ? [{ x: right, y }, near] : [near, { x: right, y }];
  const bend = (from.x + to.x) / 2;
  return svg(
    canAsk ? "a" : "g",
    {
      class: inverse ? "relation inverse" : "relation",
      href: canAsk && link("ask", about),
      "aria-label": `Relation ${shorten(inverse ? `inverse of ${name}` : name)}`,
    },
    svg("title", {}, shorten(inverse ? `arrives by ${name}` : `leaves by ${name}`, 200)),
    svg("path", {
      class: "spoke",
      "marker-end": "url(#relation-arrow)",
      d: `M${from.x} ${from.y}C${bend} ${from.y} ${bend} ${to.y} ${to.x} ${to.y}`,
    }),
    svg("rect", { x: right - width, y: y - 11.5, width, height: 23, rx: 11.5 }),
    svg("text", { x: right - width / 2, y: y + 4.5, "font-size": size.size, "text-anchor": "middle" }, text),
  );
}

/** A marker for the end of a line. */
export const arrow = (id, orient = "auto") =>
  svg(
    "marker",
    { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient },
    svg("path", { d: "M0 .6 7.4 4 0 7.4Z" }),
  );

function draw(name, { anchors, relations }, width, canAsk) {
  const size = sizesFor(width);
  const around = anchors.filter((anchor) => anchor.distance !== 0);
  around.sort((a, b) => (a.distance ?? 0) - (b.distance ?? 0));
  const rings = ringsOf(around, size);
  const outer = rings.at(-1)?.y ?? size.first;
  const half = Math.max(outer, (relations.length * size.row) / 2) + 18;
  const rows = rowsOf(around.length, size.row);
  const drawn = around.map((anchor, i) =>
    drawAnchor(anchor, rings.find((ring) => ring.distance === anchor.distance), rows[i], size, half),
  );
  const reach = Math.max(size.fan, (relations.length * size.row) / 2);
  const top = (i) => (i - (relations.length - 1) / 2) * size.row;
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${2 * half}`, role: "group", "aria-label": `${shorten(name)} and its pieces` },
    svg("defs", {}, arrow("relation-arrow")),
    rings.map(({ x, y }) => svg("ellipse", { class: "ring", cx: size.centre, cy: half, rx: x, ry: y })),
    rings
      .filter(({ distance }) => distance !== null)
      .map(({ distance, y }) =>
        svg("text", { class: "hops", x: size.centre - 10, y: half - y + 5 }, hopsText(distance)),
      ),
    drawn.map(({ line }) => line),
    relations.map((relation, i) => drawRelation(name, relation, top(i), reach, size, half, canAsk)),
    drawn.map(({ dot }) => dot),
    anchors.length > around.length && svg("circle", { class: "own", cx: size.centre, cy: half, r: 20 }),
    svg("circle", { class: "centre", cx: size.centre, cy: half, r: 15 }),
    svg("text", { class: "centre-name", x: size.centre, y: half + 37 }, fitText(name, size.fan + size.widest, 15, 650)),
  );
}

/**
 * The drawing of a node.
 * @param {string} name
 * @param {{anchors: {name: string, distance: number|null}[],
 *          relations: {name: string, inverse: boolean}[]}} pieces
 * @param {boolean} [canAsk] whether relations lead to queries
 */
export function drawPieces(name, pieces, canAsk = true) {
  const isAnchor = pieces.anchors.some(({ distance }) => distance === 0);
  return h(
    "figure",
    { class: "pieces" },
    fitted({}, (width) => draw(name, pieces, width, canAsk)),
    h(
      "figcaption",
      {},
      h("span", { class: "key anchor-key" }, "anchors, by hops"),
      h("span", { class: "key relation-key" }, "relations, dashed where they arrive"),
      isAnchor && h("span", { class: "key own-key" }, "itself an anchor"),
    ),
  );
}
