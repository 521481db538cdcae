// The table of all operations, and the panel with everything that is known of the selected one.
function operationRow(op) {
  const row = make("tr", { "data-op": op.index });
  const cells = isDma(op)
    ? [place(op.source), place(op.destination), "", grouped(op.bytes) + " B", ""]
    : [shape(op.ifm.shape), shape(op.ofm.shape), shape(op.block), op.weights ? grouped(op.weights.bytes) + " B" : "", percent(op.utilisation)];
  row.append(make("td", { class: "n soft" }, op.index), make("td", {}, op.title), make("td", {}, cells[0]), make("td", {}, cells[1]), make("td", { class: "soft" }, cells[2]),
    make("td", { class: "n" }, cells[3]), make("td", { class: "n" }, grouped(op.cycles)), make("td", { class: "n" }, cells[4]), make("td", {}, chip(op.bound)));
  row.addEventListener("click", () => select(op.index, true));
  return row;
}

const place = (side) => (side.shram !== undefined ? `SHRAM 0x${side.shram.toString(16)}` : `region ${side.region} + ${grouped(side.offset)}`);

on("delegate", () => {
  const table = byId("operation-table"), d = state.delegate;
  table.tHead.replaceChildren();
  table.tBodies[0].replaceChildren();
  if (!d || !d.operations) return;
  const heads = [["#", "n"], ["operation"], ["input"], ["output"], ["block"], ["weights, bytes", "n"], ["cycles", "n"], ["of peak", "n"], ["bound by"]];
  table.tHead.append(make("tr", {}, ...heads.map(([text, c]) => make("th", { class: c, scope: "col" }, text))));
  table.tBodies[0].append(...d.operations.map(operationRow));
});

on("search", () => {
  const d = state.delegate;
  if (!d || !d.operations) return;
  for (const row of byId("operation-table").tBodies[0].rows) row.hidden = !!state.matches && !state.matches.has(Number(row.dataset.op));
  for (const row of document.querySelectorAll("#layer-list tr[data-op]")) row.classList.toggle("miss", !!state.matches && !state.matches.has(Number(row.dataset.op)));
  const shown = state.matches ? state.matches.size : d.operations.length;
  byId("operation-count").textContent = state.matches ? `${grouped(shown)} of ${grouped(d.operations.length)} operations` : `${grouped(shown)} operations`;
  byId("found").textContent = state.matches ? `${grouped(shown)} found` : "";
});

function markSelected() {
  document.querySelectorAll("tr.selected, .layer.selected").forEach((e) => e.classList.remove("selected"));
  if (state.selected === null) return;
  document.querySelectorAll(`tr[data-op="${state.selected}"]`).forEach((e) => e.classList.add("selected"));
  const op = operation(state.selected);
  if (op && op.layer >= 0) shownLayers[op.layer].item.classList.add("selected");
}

on("selection", () => {
  markSelected();
  const panel = byId("detail"), body = byId("detail-body");
  const op = state.selected === null ? null : operation(state.selected);
  panel.hidden = !op;
  body.replaceChildren();
  if (!op) return;
  body.append(make("h3", {}, `#${op.index} ${op.title}`), op.node ? make("p", { class: "soft" }, op.node) : "", facts(isDma(op) ? copyFacts(op) : kernelFacts(op)));
  const scroll = byId("operation-table").closest(".scroll"), row = byId("operation-table").querySelector(`tr[data-op="${op.index}"]`);
  if (row && !row.hidden) scroll.scrollTop = row.offsetTop - scroll.clientHeight / 2;
});
byId("detail-close").addEventListener("click", () => select(null, false));

const map = (m) => (m.scalar !== undefined ? `scalar ${m.scalar}` : `${shape(m.shape)} ${m.type} ${m.layout}, region ${m.region} + ${grouped(m.offset)}, zero point ${m.zero_point}`);
const moved = (t) => (t.read || t.write ? `${grouped(t.read)} read, ${grouped(t.write)} written, ${grouped(t.bus)} on the bus` : "");

function common(op) {
  const d = state.delegate;
  return [
    ["kind", `${op.kind}, stream offset ${op.offset}`], ["layer", op.layer >= 0 ? `${op.layer} ${d.layers[op.layer].name}` : ""],
    ["cycles", `${grouped(op.cycles)} (${time(d, op.cycles)}), from ${grouped(op.start)}${op.stall ? `, after a stall of ${grouped(op.stall)}` : ""}`],
    ["bound by", `${op.bound}: ${BOUND_TEXT[op.bound]}`], ["SRAM", moved(op.traffic.sram)], ["DRAM", moved(op.traffic.dram)],
    ["waits", (op.waits || []).map((w) => Object.entries(w).map(([k, n]) => `${k} ≤ ${n}`).join()).join(", ")],
  ];
}
const copyFacts = (op) => [...common(op), ["bytes", grouped(op.bytes)], ["from", place(op.source)], ["to", place(op.destination)]];
const kernelFacts = (op) => [
  ...common(op), ["input", map(op.ifm)], ["input 2", op.ifm2 && map(op.ifm2)], ["output", map(op.ofm)],
  ["kernel", op.kernel && `${shape(op.kernel)}, stride ${shape(op.stride)}, dilation ${shape(op.dilation)}`],
  ["padding", op.padding && op.padding.some(Boolean) ? `top ${op.padding[0]}, left ${op.padding[1]}, bottom ${op.padding[2]}, right ${op.padding[3]}` : ""], ["upscale", op.upscale],
  ["block", `${shape(op.block)}${op.traversal ? `, ${op.traversal.replace("_", " ")}` : ""}`],
  ["weights", op.weights && `${grouped(op.weights.bytes)} bytes of ${grouped(op.weights.raw_bytes)}, region ${op.weights.region}`],
  ["scales", op.scales && `${grouped(op.scales.bytes)} bytes, region ${op.scales.region}`], ["activation", op.activation === "none" ? "" : op.activation],
  ["MACs", `${grouped(op.macs)}, ${percent(op.utilisation)} of the peak`],
  ["cycles of", Object.entries(op.cycles_parts).filter(([, n]) => n).map(([k, n]) => `${k} ${grouped(n)}`).join(", ")],
  ["SHRAM banks", `IFM ${op.shram_banks.ifm}, accumulators ${op.shram_banks.accumulators}`], ["block dependency", op.blockdep],
];
