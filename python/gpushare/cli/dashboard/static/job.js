// One job of a device: a row of the table, and below it why the job waits.

import { ask, change } from "./api.js";
import { make, setText } from "./dom.js";

const PRIORITIES = ["guaranteed", "interactive", "normal", "opportunistic"];

export class Job {
  /** `say(text, isError)` shows what came of a user's action. */
  constructor(device, say) {
    this.device = device;
    this.say = say;
    this.state = make("span", { class: "state" });
    this.explain = make("div", { class: "explain" });
    this.priority = make("select", {}, ...PRIORITIES.map((name) => make("option", {}, name)));
    this.priority.addEventListener("change", () => this.change("priority", this.priority.value));
    this.pause = make("button", { type: "button" });
    this.pause.addEventListener("click", () => this.change(this.job.is_paused ? "resume" : "pause"));
    this.why = make("button", { type: "button", "aria-expanded": "false" }, "Why?");
    this.why.addEventListener("click", () => this.toggleWhy());
    this.name = make("th", { scope: "row" });
    this.cells = {};
    const cell = (key, head, ...children) => {
      this.cells[key] = make("td", { "data-head": head, class: key }, ...children);
      return this.cells[key];
    };
    const row = make(
      "tr",
      {},
      this.name,
      cell("user", "User"),
      cell("status", "State", this.state, this.explain),
      cell("class", "Priority", this.priority),
      cell("got", "Got"),
      cell("rate", "Iterations/s"),
      cell("resident", "Resident"),
      cell("spilled", "Spilled"),
      cell("actions", "Actions", this.pause, " ", this.why),
    );
    this.reason = make("pre");
    this.below = make("tr", { class: "why" }, make("td", { colspan: "9" }, this.reason));
    this.below.hidden = true;
    this.elements = [row, this.below];
  }

  show(job) {
    this.job = job;
    const title = `${job.job} ${job.name}`;
    setText(this.name, title);
    for (const key of ["user", "got", "rate", "resident", "spilled"]) setText(this.cells[key], job[key]);
    setText(this.state, job.state);
    this.state.dataset.state = job.state;
    setText(this.explain, job.explain);
    this.elements[0].title = job.settings;
    if (document.activeElement !== this.priority && !this.isChanging) this.priority.value = job.priority;
    this.priority.setAttribute("aria-label", `Priority of job ${title}`);
    const word = job.is_paused ? "Resume" : "Pause";
    setText(this.pause, word);
    this.pause.setAttribute("aria-label", `${word} job ${title}`);
    this.why.setAttribute("aria-label", `Why is job ${title} ${job.state}?`);
  }

  get named() {
    return { device: this.device, job: this.job.job, pid: this.job.pid };
  }

  /** Asks the job's coordinator for a change, and shows its words; the next reading shows the rest. */
  async change(what, value = "") {
    this.isChanging = true;
    this.pause.disabled = true;
    try {
      this.say((await change({ ...this.named, what, value })).said.join(" "), false);
    } catch (error) {
      this.say(error.message, true);
      this.priority.value = this.job.priority;
    } finally {
      this.isChanging = false;
      this.pause.disabled = false;
    }
  }

  async toggleWhy() {
    const isShown = !this.below.hidden;
    this.below.hidden = isShown;
    this.why.setAttribute("aria-expanded", String(!isShown));
    if (isShown) return;
    setText(this.reason, "asking the coordinator");
    try {
      setText(this.reason, (await ask("why", this.named)).said.join("\n"));
    } catch (error) {
      setText(this.reason, error.message);
    }
  }
}
