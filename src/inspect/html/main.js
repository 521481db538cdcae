// Header, keys, and what the address says (#q=conv&op=12&theme=dark), so that a place in the report can be kept.
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  changed("view");
  drawEdges();
}
const otherTheme = () => (document.documentElement.dataset.theme === "dark" ? "light" : "dark");

function step(direction) {
  const d = state.delegate;
  if (!d || !d.operations) return;
  const list = state.matches ? d.operations.filter((op) => state.matches.has(op.index)) : d.operations;
  if (!list.length) return;
  const at = list.findIndex((op) => op.index === state.selected);
  const next = at < 0 ? (direction > 0 ? 0 : list.length - 1) : Math.min(Math.max(at + direction, 0), list.length - 1);
  select(list[next].index, true);
}

function onKey(event) {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    byId("search").value = "";
    search("");
    return select(null, false);
  }
  if (typing) {
    if (event.key === "Enter") step(1);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const move = (state.to - state.from) / 5;
  const keys = {
    "/": () => byId("search").focus(), t: () => setTheme(otherTheme()), "?": () => byId("keys").showModal(), o: () => byId("open-all").click(), c: () => byId("close-all").click(),
    ArrowRight: () => step(1), ArrowLeft: () => step(-1), "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1.4), 0: () => setView(0, Infinity),
    a: () => setView(state.from - move, state.to - move), d: () => setView(state.from + move, state.to + move),
  };
  if (!keys[event.key] || (!state.delegate && event.key !== "t" && event.key !== "?")) return;
  event.preventDefault();
  keys[event.key]();
}

function start() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  setTheme(wanted.get("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  const name = report.file.split("/").pop();
  byId("file").textContent = name;
  const choice = byId("delegate");
  report.delegates.forEach((d, i) => choice.append(make("option", { value: i }, `delegate ${d.index}${report.methods.filter((m) => m.plan).length > 1 ? ` of ${d.method}` : ""}`)));
  choice.hidden = report.delegates.length < 2;
  choice.addEventListener("change", () => chooseDelegate(Number(choice.value)));
  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("theme").addEventListener("click", () => setTheme(otherTheme()));
  byId("help").addEventListener("click", () => byId("keys").showModal());
  for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => (button.dataset.zoom === "all" ? setView(0, Infinity) : zoom(button.dataset.zoom === "in" ? 0.7 : 1.4)));
  document.addEventListener("keydown", onKey);
  chooseDelegate(Math.min(Number(wanted.get("delegate") || 0), Math.max(report.delegates.length - 1, 0)));
  if (wanted.has("q")) {
    byId("search").value = wanted.get("q");
    search(wanted.get("q"));
  }
  if (wanted.has("op") && state.delegate && state.delegate.operations && operation(Number(wanted.get("op")))) select(Number(wanted.get("op")), true);
  if (wanted.has("open")) byId("open-all").click();
}

on("delegate", () => {
  const d = state.delegate, has = !!(d && d.operations);
  for (const id of ["timeline", "layers", "operations"]) byId(id).hidden = !has;
  byId("search").disabled = !has;
  byId("subtitle").textContent = d ? [d.backend, d.npu || d.target, d.memory_mode, d.system_config].filter(Boolean).join(" · ") : "no delegate: all operators run on the CPU";
  if (has) setView(0, d.cycles_total);
});
start();
