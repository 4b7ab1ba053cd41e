// One device: its facts, its last minutes, and its jobs.

import { make, setChildren, setText } from "./dom.js";
import { Job } from "./job.js";
import { Memory } from "./memory.js";
import { Timeline } from "./timeline.js";

const HEADS = ["Job", "User", "State", "Priority", "Got", "Iterations/s", "Resident", "Spilled", "Actions"];

export class Device {
  /** `say(text, isError)` shows what came of a user's action. */
  constructor(say) {
    this.say = say;
    this.jobs = new Map();
    this.title = make("h2");
    this.facts = make("ul", { class: "facts", "aria-label": "Facts" });
    this.body = make("tbody");
    this.none = make("p", { class: "quiet" }, "No jobs.");
    const heads = HEADS.map((text) => make("th", { scope: "col" }, text));
    this.table = make("table", { class: "jobs" }, make("thead", {}, make("tr", {}, ...heads)), this.body);
    this.timeline = new Timeline();
    this.memory = new Memory();
    const charts = make("div", { class: "charts" }, this.timeline.element, this.memory.element);
    // The charts stand above the table, which may be many screens long.
    this.element = make("section", {}, this.title, this.facts, this.none, charts, this.table);
  }

  show(device, windowSeconds) {
    setText(this.title, device.label);
    if (device.facts.length !== this.facts.children.length) {
      this.facts.replaceChildren(...device.facts.map(() => make("li")));
    }
    device.facts.forEach((fact, index) => setText(this.facts.children[index], fact));
    this.showJobs(device);
    const line = device.timeline;
    this.timeline.element.parentElement.hidden = !line;
    if (!line) return;
    this.timeline.take(line, device.jobs, windowSeconds);
    this.memory.take(line, windowSeconds);
    if (this.element.isConnected) this.draw();
    else requestAnimationFrame(() => this.draw());
  }

  showJobs(device) {
    const rows = device.jobs.map((job) => {
      const key = `${job.job} ${job.pid}`;
      if (!this.jobs.has(key)) this.jobs.set(key, new Job(device.device, this.say));
      const row = this.jobs.get(key);
      row.show(job);
      return [key, row];
    });
    this.jobs = new Map(rows);
    setChildren(this.body, rows.flatMap(([, row]) => row.elements));
    this.none.hidden = rows.length > 0;
    this.table.hidden = rows.length === 0;
  }

  draw() {
    this.timeline.draw();
    this.memory.draw();
  }
}
