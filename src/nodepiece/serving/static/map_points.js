/** The points of the map: where they are, their groups, and which is nearest to a place. */

// Okabe and Ito's colours, told apart with any colour vision; in light and in dark.
export const COLOURS = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a06a00", "#3d9bd0", "#6a51a3", "#20242c", "#7d8694"],
  dark: ["#56b4e9", "#e8814a", "#2fc79a", "#e39ac4", "#e6b84c", "#9ad4f5", "#b3a2e6", "#f4f4f4", "#8b94a3"],
};
export const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down", "ring", "bar", "dot"];
export const OTHER = COLOURS.light.length - 1; // the last colour and shape: all smaller groups
const REST = "other"; // how the server calls them

/**
 * @typedef {object} Points
 * @property {string[]} names
 * @property {Float32Array} x from 0 to 1 @property {Float32Array} y
 * @property {number} width of all points @property {number} height
 * @property {Uint8Array} kind the colour and shape of each
 * @property {{name: string, kind: number, size: number}[]} groups largest first
 */

/** Points from the answer of the server. @returns {Points} */
export function pointsOf({ names, x, y, groups = [], num_nodes_in_run: all = names.length }) {
  const [left, top] = [least(x), least(y)];
  const [width, height] = [greatest(x) - left, greatest(y) - top];
  const span = Math.max(width, height) || 1;
  const scaled = (values, low) => Float32Array.from(values, (value) => (value - low) / span);
  const sizes = new Map();
  for (const group of groups) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  const ordered = [...sizes].filter(([name]) => name !== REST).sort((a, b) => b[1] - a[1]);
  const kindOf = new Map(ordered.map(([group], i) => [group, Math.min(i, OTHER)]));
  const shown = ordered.slice(0, OTHER).map(([name, size], kind) => ({ name, kind, size }));
  const rest = groups.length - shown.reduce((sum, { size }) => sum + size, 0);
  if (rest > 0) shown.push({ name: REST, kind: OTHER, size: rest });
  return {
    names,
    x: scaled(x, left),
    y: scaled(y, top),
    kind: Uint8Array.from(names, (_, i) => kindOf.get(groups[i]) ?? OTHER),
    width: width / span,
    height: height / span,
    groups: shown,
    groupOf: (i) => groups[i] ?? "",
    all,
  };
}

const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const greatest = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

/**
 * A grid over the points: `nearest(x, y, reach)` looks only at the cells that the reach touches.
 * Points of a cell are consecutive in `order`, from `start[cell]`.
 */
export function gridOf({ x, y }) {
  const side = Math.max(1, Math.min(256, Math.ceil(Math.sqrt(x.length / 4))));
  const place = (value) => Math.min(side - 1, Math.max(0, Math.floor(value * side)));
  const cell = Uint32Array.from(x, (_, i) => place(y[i]) * side + place(x[i]));
  const start = new Uint32Array(side * side + 1);
  for (const each of cell) start[each + 1]++;
  for (let i = 0; i < side * side; i++) start[i + 1] += start[i];
  const order = new Uint32Array(x.length);
  const next = start.slice();
  cell.forEach((each, i) => (order[next[each]++] = i));

  function nearest(atX, atY, reach) {
    let best = -1;
    let bestSquare = reach * reach;
    for (let row = place(atY - reach); row <= place(atY + reach); row++) {
      for (let column = place(atX - reach); column <= place(atX + reach); column++) {
        const here = row * side + column;
        for (let i = start[here]; i < start[here + 1]; i++) {
          const point = order[i];
          const square = (x[point] - atX) ** 2 + (y[point] - atY) ** 2;
          if (square <= bestSquare) [best, bestSquare] = [point, square];
        }
      }
    }
    return best;
  }
  return { nearest };
}
