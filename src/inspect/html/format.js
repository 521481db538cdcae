// Text and elements. Everything out of the file goes through textContent, never through markup.
const KINDS = ["mac", "weights", "output", "command", "sram", "dram", "dma"];
const BOUND_TEXT = {
  mac: "multipliers", weights: "waiting for weights", output: "output unit", command: "latency of small blocks",
  sram: "SRAM bandwidth", dram: "DRAM bandwidth", dma: "copy", none: "",
};
const RANGE_COLOURS = { input: "--input", "feature map": "--feature", weights: "--weight-range", table: "--table", copy: "--copy" };

const grouped = (n) => Math.round(n).toLocaleString("en-US");
const shape = (s) => (s ? s.join("×") : "");
const bare = (s) => shape(s.slice(Math.max(0, s.findIndex((n) => n !== 1)))); // without the 1s in front
const percent = (x) => (100 * x).toFixed(1) + " %";
const size = (n) => (n < 1024 ? n + " B" : n < 1048576 ? (n / 1024).toFixed(1) + " KiB" : (n / 1048576).toFixed(2) + " MiB");
const byId = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// make("td", {class: "n"}, "text", otherElement …)
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) element.append(child instanceof Node ? child : String(child ?? ""));
  return element;
}

function chip(bound) {
  return make("span", { class: "chip", style: `background:var(--${bound})`, title: BOUND_TEXT[bound] }, bound);
}

function facts(rows) {
  const table = make("table", { class: "facts" });
  for (const [name, value] of rows) {
    if (value === undefined || value === null || value === "") continue;
    table.append(make("tr", {}, make("td", {}, name), make("td", {}, value)));
  }
  return table;
}

function microseconds(delegate, cycles) {
  return (cycles / delegate.estimate_for.clock_hz) * 1e6;
}
function time(delegate, cycles) {
  const us = microseconds(delegate, cycles);
  return us >= 1000 ? (us / 1000).toFixed(3) + " ms" : us.toFixed(us >= 100 ? 0 : 1) + " µs";
}
