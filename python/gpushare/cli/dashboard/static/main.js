// The page: takes the readings, one a second, and shows each device.

import { ask, listen } from "./api.js";
import { Device } from "./device.js";
import { make, setChildren, setText } from "./dom.js";

const LATE_MS = 4000;
const RETRY_MS = 2000;
const page = Object.fromEntries(
  ["who", "connection", "message", "notes", "devices", "show-history", "history-table"].map((id) => [
    id,
    document.getElementById(id),
  ]),
);
const devices = new Map();
let last = 0;
let trouble = "connecting";

/** Shows what came of something that the user did. */
function say(text, isError) {
  page.message.hidden = false;
  page.message.className = isError ? "error" : "";
  setText(page.message, text);
}

function take(reading) {
  last = performance.now();
  trouble = "";
  showConnection();
  setText(page.who, `${reading.host}, as user ${reading.user}`);
  for (const device of reading.devices) {
    if (!devices.has(device.key)) devices.set(device.key, new Device(say));
    devices.get(device.key).show(device, reading.window_seconds);
  }
  const shown = new Set(reading.devices.map((device) => device.key));
  for (const key of devices.keys()) if (!shown.has(key)) devices.delete(key);
  setChildren(page.devices, [...devices.values()].map((device) => device.element));
  const notes = reading.notes.map((note) => (note.device ? `${note.device}: ` : "") + note.text);
  if (notes.join("\n") !== [...page.notes.children].map((note) => note.textContent).join("\n")) {
    page.notes.replaceChildren(...notes.map((text) => make("li", {}, text)));
  }
}

function showConnection() {
  const seconds = Math.round((performance.now() - last) / 1000);
  const isLate = last > 0 && performance.now() - last > LATE_MS;
  page.connection.className = trouble || isLate ? "error" : "live";
  setText(page.connection, trouble || (isLate ? `no news for ${seconds} s` : "live"));
}

async function follow() {
  for (;;) {
    try {
      devices.clear(); // the first reading of a stream has the whole window
      await listen(take);
      trouble = "The dashboard has ended. Start it again: gpushare dashboard";
    } catch (error) {
      trouble = error.isRefusal
        ? error.message
        : "The dashboard does not answer. Start it again: gpushare dashboard";
    }
    showConnection();
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function showHistory() {
  try {
    const { heads, rows, notes } = await ask("history");
    const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
    const body = rows.map((row) => make("tr", {}, ...row.map((text) => make("td", {}, text))));
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
    const wide = make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Ended jobs" }, table);
    const shown = rows.length ? wide : make("p", {}, "No job has ended yet, or no account of one can be read.");
    page["history-table"].replaceChildren(shown, ...notes.map((note) => make("p", {}, note)));
    setText(page["show-history"], "Read again");
  } catch (error) {
    say(error.message, true);
  }
}

page["show-history"].addEventListener("click", showHistory);
window.addEventListener("resize", () => devices.forEach((device) => device.draw()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  devices.forEach((device) => device.draw()),
);
setInterval(showConnection, 1000);
follow();
