// Figures at the top: time, work, traffic; where cycles go; what each pool needs.
on("delegate", () => {
  const cards = byId("cards");
  const d = state.delegate;
  cards.replaceChildren();
  const card = (value, text, hint) => cards.append(make("div", { class: "card", title: hint }, make("b", {}, value), make("span", {}, text)));
  if (d && d.operations) {
    card(grouped(d.cycles_total), "cycles, estimated", `for ${d.estimate_for.npu}, ${d.estimate_for.system_config}, ${d.estimate_for.memory_mode}`);
    card(time(d, d.cycles_total), `at ${d.estimate_for.clock_hz / 1e6} MHz`);
    card(grouped(d.macs), "MACs");
    card(percent(d.utilisation), "of the MAC array's peak");
    card(size(d.sram_bytes), "moved in SRAM");
    card(size(d.dram_bytes), "moved in DRAM");
    if (d.raw_weight_bytes) card(size(d.weight_bytes), `weights, encoded from ${size(d.raw_weight_bytes)}`);
    card(grouped(d.operations.length), `operations in ${d.layers.length} layers`);
  }
  card(size(report.bytes), "file");
  if (report.memory.total !== undefined) card(size(report.memory.total), "memory in all", "method, planned, temporary, scratch, fast scratch");
  drawBounds(d);
  drawPools();
  const problem = byId("problem");
  problem.hidden = !(d && d.problem);
  problem.textContent = (d && d.problem) || "";
});

function drawBounds(d) {
  const box = byId("bounds");
  box.replaceChildren();
  if (!d || !d.operations) return;
  const kinds = KINDS.filter((k) => k !== "dma" && d.cycles_by_bound[k] > 0);
  const all = kinds.reduce((sum, k) => sum + d.cycles_by_bound[k], 0);
  const table = make("table", { class: "facts" });
  for (const k of kinds) {
    const share = d.cycles_by_bound[k] / all;
    table.append(make("tr", {}, make("td", {}, chip(k)), make("td", { class: "n" }, grouped(d.cycles_by_bound[k])), make("td", { class: "n" }, percent(share)),
      make("td", { style: "width:55%" }, make("span", { class: "meter", style: `width:${100 * share}%;background:var(--${k})` }))));
  }
  box.append(make("h2", {}, "What bounds the NPU's cycles"), table);
}

function drawPools() {
  const box = byId("pools");
  box.replaceChildren(make("h2", {}, `Memory of method ${report.method}, to the byte`));
  const m = report.memory;
  if (m.problem) {
    box.append(make("p", { class: "problem" }, m.problem));
    return;
  }
  const rows = [["method", m.method, "the executor's tables"], ...m.planned.map((n, i) => [`planned ${i + 1}`, n, "tensors of the method"]),
    ["temporary", m.temporary, "scratch of CPU operators"], ["scratch", m.scratch, "NPU region 1"], ["fast scratch", m.fast_scratch, "NPU region 2"], ["total", m.total, ""]];
  const table = make("table", { class: "facts" });
  for (const [name, bytes, what] of rows) {
    table.append(make("tr", {}, make("td", {}, name), make("td", { class: "n" }, grouped(bytes)), make("td", { class: "soft" }, what)));
  }
  box.append(table);
}
