// Where the device's memory was over the last minutes: resident, free, and spilled to the host.

import { colour, make, prepare } from "./dom.js";
import { drawAxis } from "./timeline.js";

const HEIGHT = 140;
const AXIS = 20;
const TOP = 8;
const LEFT = 64;
const LINES = [
  [1, "resident", "--lease", []],
  [2, "spilled", "--spilled", [6, 3]],
  [3, "free", "--free", [2, 3]],
];

export class Memory {
  constructor() {
    this.samples = [];
    this.canvas = make("canvas", { role: "img" });
    this.values = make("p", { class: "legend" });
    this.texts = LINES.map(([, name]) => {
      const text = make("span", {}, name);
      this.values.append(make("span", { class: `key line ${name}` }), text, " ");
      return text;
    });
    const box = make("div", { class: "canvas" }, this.canvas);
    this.element = make("figure", {}, make("figcaption", {}, "Memory"), this.values, box);
  }

  take(line, windowSeconds) {
    this.now = line.now;
    this.samples = this.samples.filter((sample) => sample[0] > this.now - windowSeconds);
    this.samples.push(...line.memory);
  }

  draw() {
    const newest = this.samples.at(-1);
    if (!newest) return;
    const { drawing, width } = prepare(this.canvas, HEIGHT);
    const most = Math.max(1, ...this.samples.flatMap((sample) => sample.slice(1)));
    const span = Math.max(10, this.now - this.samples[0][0]);
    const x = (at) => width - (width - LEFT) * ((this.now - at) / span);
    const y = (bytes) => TOP + (HEIGHT - AXIS - TOP) * (1 - bytes / most);
    drawing.strokeStyle = colour("--line");
    drawing.beginPath();
    for (const bytes of [0, most / 2, most]) {
      drawing.moveTo(LEFT, y(bytes));
      drawing.lineTo(width, y(bytes));
    }
    drawing.stroke();
    drawing.lineWidth = 2;
    LINES.forEach(([index, name, ink, dash], place) => {
      drawing.strokeStyle = colour(ink);
      drawing.setLineDash(dash);
      drawing.beginPath();
      for (const sample of this.samples) drawing.lineTo(x(sample[0]), y(sample[index]));
      drawing.stroke();
      this.texts[place].textContent = `${name} ${size(newest[index])}`;
    });
    drawing.setLineDash([]);
    drawing.fillStyle = colour("--quiet");
    drawing.textBaseline = "middle";
    for (const bytes of [0, most / 2, most]) drawing.fillText(size(bytes), 0, y(bytes));
    drawAxis(drawing, { left: LEFT, width, top: HEIGHT - AXIS / 2, span });
    const text = LINES.map(([index, name]) => `${name} ${size(newest[index])}`).join(", ");
    this.canvas.setAttribute("aria-label", `Memory now: ${text}`);
  }
}

/** Bytes as the command line writes them. */
function size(bytes) {
  for (const [unit, power] of [["GiB", 30], ["MiB", 20], ["KiB", 10]]) {
    if (bytes >= 2 ** power) return `${(bytes / 2 ** power).toFixed(1)} ${unit}`;
  }
  return `${bytes} B`;
}
