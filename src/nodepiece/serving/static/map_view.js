/** What part of the map is seen, and how pointers, the wheel and keys change it. */

const LARGEST = 60; // times the zoom at which all points are seen

/**
 * A view of all points: a point at (x, y) in [0, 1] is drawn at (x * zoom - view.x, y * zoom - view.y).
 */
export function newView(width, height, points) {
  const fit = 0.9 * Math.min(width / (points.width || 0.1), height / (points.height || 0.1));
  const x = (points.width * fit - width) / 2;
  return { width, height, fit, zoom: fit, x, y: (points.height * fit - height) / 2 };
}

/** Zooms by a factor, and keeps the place at (x, y) of the screen where it is. */
export function zoomAt(view, factor, x, y) {
  const zoom = Math.min(view.fit * LARGEST, Math.max(view.fit * 0.7, view.zoom * factor));
  const real = zoom / view.zoom;
  view.x = (view.x + x) * real - x;
  view.y = (view.y + y) * real - y;
  view.zoom = zoom;
}

/** Puts a point of the map into the middle. */
export function centreOn(view, x, y, zoom = view.zoom) {
  view.zoom = zoom;
  view.x = x * zoom - view.width / 2;
  view.y = y * zoom - view.height / 2;
}

/**
 * Lets pointers move and zoom the view.
 * @param {HTMLElement} canvas
 * @param {object} view
 * @param {{moved: () => void, hover: (x: number, y: number) => void, click: (x: number, y: number) => void}} on
 */
export function controlByPointer(canvas, view, on) {
  const held = new Map(); // pointers that are down, with their places
  let travelled = 0;
  const place = (event) => ({ x: event.offsetX, y: event.offsetY });
  const spread = () => {
    const [a, b] = [...held.values()];
    return { gap: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (held.size === 0) travelled = 0;
    held.set(event.pointerId, place(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = held.get(event.pointerId);
    if (!before) {
      on.hover(now.x, now.y);
      return;
    }
    const old = held.size === 2 ? spread() : null;
    held.set(event.pointerId, now);
    if (old) {
      const fresh = spread();
      zoomAt(view, fresh.gap / (old.gap || 1), fresh.x, fresh.y);
      view.x -= fresh.x - old.x;
      view.y -= fresh.y - old.y;
    } else {
      view.x -= now.x - before.x;
      view.y -= now.y - before.y;
    }
    travelled += Math.hypot(now.x - before.x, now.y - before.y);
    on.moved();
  });
  const release = (event) => {
    const isClick = held.delete(event.pointerId) && travelled < 6 && event.type === "pointerup";
    if (isClick) on.click(event.offsetX, event.offsetY);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 30 : 1;
      zoomAt(view, Math.exp(-event.deltaY * lines * 0.0016), event.offsetX, event.offsetY);
      on.moved();
    },
    { passive: false },
  );
}

/** What each key does to the view; null: the key is not used. */
export function keyAction(view, key, points) {
  const step = view.width / 10;
  const middle = [view.width / 2, view.height / 2];
  const actions = {
    ArrowLeft: () => (view.x -= step),
    ArrowRight: () => (view.x += step),
    ArrowUp: () => (view.y -= step),
    ArrowDown: () => (view.y += step),
    "+": () => zoomAt(view, 1.4, ...middle),
    "=": () => zoomAt(view, 1.4, ...middle),
    "-": () => zoomAt(view, 1 / 1.4, ...middle),
    0: () => Object.assign(view, newView(view.width, view.height, points)),
  };
  return actions[key] ?? null;
}
