// The graph: layers from top to bottom, arcs for what does not simply follow; a layer opens to its operations.
const shownLayers = [];

on("delegate", () => {
  const list = byId("layer-list");
  list.replaceChildren();
  shownLayers.length = 0;
  const d = state.delegate;
  if (!d || !d.layers) return;
  const longest = Math.max(1, ...d.layers.map((l) => l.cycles));
  d.inputs.forEach((input, i) => list.append(make("li", { class: "pill", "data-input": i }, `input ${i}: ${bare(input.shape)}, ${grouped(input.bytes)} bytes`)));
  d.layers.forEach((layer, i) => {
    const item = make("li", { class: "layer", id: `layer-${i}`, style: `border-left-color:var(--${layer.bound})` });
    const head = make("button", { type: "button", "aria-expanded": "false" },
      make("span", { class: "soft" }, i), make("span", { class: "name" }, layer.name), make("span", {}, `${shape(layer.ifm)} → ${shape(layer.ofm)}`),
      make("span", { class: "soft" }, layer.operations.length === 1 ? "1 op" : `${layer.operations.length} ops`), make("span", {}, `${grouped(layer.cycles)}`),
      make("span", {}, make("span", { class: "meter", title: `bound by ${layer.bound}`, style: `width:${(100 * layer.cycles) / longest}%;background:var(--${layer.bound})` })));
    head.addEventListener("click", () => toggleLayer(i));
    head.addEventListener("pointerenter", () => heat(i, true));
    head.addEventListener("pointerleave", () => heat(i, false));
    item.append(head);
    list.append(item);
    shownLayers.push({ item, head, open: false });
  });
  d.outputs.forEach((output, i) => list.append(make("li", { class: "pill" }, `output ${i}: ${bare(output.shape)}, ${grouped(output.bytes)} bytes`)));
  byId("layer-count").textContent = `${d.layers.length} layers`;
  drawEdges();
});

function toggleLayer(i, open) {
  const shown = shownLayers[i];
  const want = open ?? !shown.open;
  if (want === shown.open) return;
  shown.open = want;
  shown.head.setAttribute("aria-expanded", String(want));
  if (!want) {
    shown.item.querySelector(".inside").remove();
  } else {
    const table = make("table", {}, make("tbody"));
    for (const index of state.delegate.layers[i].operations) table.tBodies[0].append(operationRow(operation(index)));
    shown.item.append(make("div", { class: "inside" }, table));
  }
  markSelected();
  drawEdges();
}

function drawEdges() {
  const svg = byId("edges");
  svg.replaceChildren();
  const d = state.delegate;
  if (!d || !d.layers || !d.layers.length) return;
  const top = byId("graph").getBoundingClientRect().top;
  const middle = (element) => { const box = element.getBoundingClientRect(); return box.top - top + 14; };
  const right = byId("layer-list").getBoundingClientRect().left - byId("graph").getBoundingClientRect().left - 2;
  d.layers.forEach((layer, i) => {
    for (const input of layer.inputs) {
      const element = typeof input === "number" ? shownLayers[input].item : document.querySelector(`[data-input="${input.input}"]`);
      if (!element) continue;
      const from = middle(element), to = middle(shownLayers[i].item);
      const near = typeof input === "number" && i - input === 1;
      const reach = near ? 8 : Math.min(right - 8, 14 + 9 * Math.log2(1 + Math.abs(to - from) / 24));
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", `M${right},${from} C${right - reach * 1.35},${from} ${right - reach * 1.35},${to} ${right},${to}`);
      path.dataset.from = typeof input === "number" ? input : "";
      path.dataset.to = i;
      svg.append(path);
    }
  });
}

function heat(i, hot) {
  for (const path of byId("edges").children) {
    if (path.dataset.from === String(i) || path.dataset.to === String(i)) path.classList.toggle("hot", hot);
  }
}

on("search", () => {
  if (!state.delegate || !state.delegate.layers) return;
  let count = 0;
  state.delegate.layers.forEach((layer, i) => {
    const hit = !state.matches || layer.operations.some((index) => state.matches.has(index));
    if (hit) ++count;
    shownLayers[i].item.classList.toggle("miss", !hit);
  });
  byId("layer-count").textContent = state.matches ? `${count} of ${state.delegate.layers.length} layers` : `${state.delegate.layers.length} layers`;
});
byId("open-all").addEventListener("click", () => shownLayers.forEach((_, i) => toggleLayer(i, true)));
byId("close-all").addEventListener("click", () => shownLayers.forEach((_, i) => toggleLayer(i, false)));
new ResizeObserver(drawEdges).observe(byId("layer-list"));
