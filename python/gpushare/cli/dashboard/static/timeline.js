// Who held the lease and who waited, over the last minutes: a row for each job.

import { colour, make, prepare } from "./dom.js";

const ROW = 20;
const SMALL_ROW = 14;
const MANY = 16;
const AXIS = 20;
const LEASE = 0;

export class Timeline {
  constructor() {
    this.slices = [];
    this.names = {};
    this.canvas = make("canvas", { role: "img" });
    const legend = make(
      "p",
      { class: "legend" },
      make("span", { class: "key lease" }),
      "holds the lease ",
      make("span", { class: "key wait" }),
      "waits for it",
    );
    this.rows = make("div", { class: "canvas rows" }, this.canvas);
    // Many rows scroll by themselves, so the axis is below them in its own canvas.
    this.axis = make("canvas", { "aria-hidden": "true" });
    const below = make("div", { class: "canvas" }, this.axis);
    this.element = make("figure", {}, make("figcaption", {}, "Leases"), legend, this.rows, below);
  }

  take(line, jobs, windowSeconds) {
    this.now = line.now;
    this.window = windowSeconds;
    this.slices = this.slices.filter((slice) => slice[2] + slice[3] > this.now - windowSeconds);
    this.slices.push(...line.slices);
    this.underWay = line.under_way;
    Object.assign(this.names, line.names);
    for (const job of jobs) this.names[job.job] = job.name;
  }

  draw() {
    if (this.now === undefined) return;
    const all = [...this.slices, ...this.underWay];
    const numbers = [...new Set(all.map((slice) => slice[0]))].sort((one, other) => one - other);
    const height = numbers.length > MANY ? SMALL_ROW : ROW;
    if (numbers.length > MANY) this.rows.tabIndex = 0; // keys scroll, too
    else this.rows.removeAttribute("tabindex");
    const { drawing, width } = prepare(this.canvas, Math.max(1, numbers.length) * height);
    const left = Math.min(150, width / 3);
    // A dashboard that has just begun fills the width; later it is the whole window.
    const oldest = Math.min(...all.map((slice) => slice[2]), this.now - 10);
    const span = Math.min(this.window, this.now - oldest);
    const begin = this.now - span;
    const x = (at) => left + ((Math.max(at, begin) - begin) / span) * (width - left);
    const colours = { lease: colour("--lease"), wait: colour("--wait") };
    const rows = new Map(numbers.map((number, index) => [number, index * height]));
    drawing.fillStyle = colour("--stripe");
    for (const top of rows.values()) drawing.fillRect(left, top + 2, width - left, height - 4);
    const held = new Map();
    // Leases last, over the waits that they end.
    for (const [number, kind, at, seconds] of [...all].sort((one, other) => other[1] - one[1])) {
      if (at + seconds < begin) continue;
      drawing.fillStyle = kind === LEASE ? colours.lease : colours.wait;
      const inset = height * (kind === LEASE ? 0.1 : 0.35);
      const from = x(at);
      drawing.fillRect(from, rows.get(number) + inset, Math.max(x(at + seconds) - from, 0.5), height - 2 * inset);
      if (kind === LEASE) held.set(number, (held.get(number) ?? 0) + seconds);
    }
    drawing.fillStyle = colour("--text");
    drawing.textBaseline = "middle";
    for (const number of numbers) {
      drawing.fillText(fit(drawing, this.title(number), left - 8), 0, rows.get(number) + height / 2);
    }
    const below = prepare(this.axis, AXIS).drawing;
    drawAxis(below, { left, width, top: AXIS / 2, span });
    const parts = numbers.map((n) => `${this.title(n)} ${Math.min(held.get(n) ?? 0, span).toFixed(1)} s`);
    const text = `Time with the lease in the last ${Math.round(span)} s: ${parts.join(", ") || "nobody"}`;
    this.canvas.setAttribute("aria-label", text);
  }

  title(number) {
    return `${number} ${this.names[number] ?? ""}`;
  }
}

/** Puts a "~" for the middle of a text that is wider than that: names of a sweep differ at their ends. */
function fit(drawing, text, width) {
  if (drawing.measureText(text).width <= width) return text;
  const letters = Array.from(text);
  for (let kept = letters.length - 1; kept > 0; kept--) {
    const atEnd = Math.floor(kept / 2);
    const cut = [...letters.slice(0, kept - atEnd), "~", ...letters.slice(letters.length - atEnd)].join("");
    if (drawing.measureText(cut).width <= width) return cut;
  }
  return "~";
}

/** Writes how long ago the left end, the middle and the right end are. */
export function drawAxis(drawing, { left, width, top, span }) {
  drawing.fillStyle = colour("--quiet");
  drawing.textBaseline = "middle";
  for (const [part, align] of [[0, "left"], [0.5, "center"], [1, "right"]]) {
    drawing.textAlign = align;
    const seconds = Math.round(span * (1 - part));
    const ago = seconds >= 120 ? `${+(seconds / 60).toFixed(1)} min ago` : `${seconds} s ago`;
    drawing.fillText(seconds ? ago : "now", left + part * (width - left), top);
  }
  drawing.textAlign = "left";
}
