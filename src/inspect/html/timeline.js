// Operations over time: layers, kernels coloured by what bounds them, DMA.
const ROW = 13;
function lanes() {
  const rows = ROW * state.delegate.layerRows;
  return { layers: { y: 10, h: rows, title: "layers" }, kernels: { y: 18 + rows, h: 56, title: "kernels" }, dma: { y: 82 + rows, h: 22, title: "DMA" } };
}

const isDma = (op) => op.bound === "dma";

function drawTimeline(pen, view) {
  const d = state.delegate, all = lanes();
  for (const lane of Object.values(all)) laneTitle(pen, lane.title, lane.y + lane.h / 2 + 4);
  pen.save();
  pen.beginPath();
  pen.rect(GUTTER, 0, view.width - GUTTER, view.height);
  pen.clip();
  d.layers.forEach((layer, i) => {
    if (layer.end < state.from || layer.shownStart > state.to) return;
    const x = view.x(layer.shownStart), w = Math.max(view.x(layer.end) - x, 1);
    pen.globalAlpha = 0.35;
    pen.fillStyle = colour(`--${layer.bound}`);
    pen.fillRect(x, all.layers.y + layer.row * ROW, w > 2 ? w - 0.7 : w, ROW - 2);
    pen.globalAlpha = 1;
    label(pen, `${i} ${layer.name}`, Math.max(x, GUTTER) + 3, all.layers.y + layer.row * ROW + 9, Math.min(x + w, view.width) - Math.max(x, GUTTER) - 6, 9);
  });
  const colours = Object.fromEntries(KINDS.concat("none").map((k) => [k, colour(`--${k}`)]));
  for (const op of d.operations) {
    if (op.end < state.from || op.start > state.to) continue;
    const lane = isDma(op) ? all.dma : all.kernels;
    const x = view.x(op.start), w = Math.max(view.x(op.end) - x, 0.6);
    pen.globalAlpha = state.matches && !state.matches.has(op.index) ? 0.15 : 1;
    pen.fillStyle = colours[op.bound];
    pen.fillRect(x, lane.y, w > 3 ? w - 0.7 : w, lane.h);
    if (w > 46 && !isDma(op)) {
      pen.fillStyle = "#fff";
      label(pen, op.title, Math.max(x, GUTTER) + 4, lane.y + 17, Math.min(x + w, view.width) - Math.max(x, GUTTER) - 8, 12);
      label(pen, shape(op.ofm.shape), Math.max(x, GUTTER) + 4, lane.y + 33, Math.min(x + w, view.width) - Math.max(x, GUTTER) - 8, 11);
    }
  }
  pen.globalAlpha = 1;
  if (state.selected !== null && operation(state.selected)) {
    const op = operation(state.selected), lane = isDma(op) ? all.dma : all.kernels;
    pen.strokeStyle = colour("--ink");
    pen.lineWidth = 2;
    pen.strokeRect(view.x(op.start) - 1, lane.y - 1, Math.max(view.x(op.end) - view.x(op.start), 2) + 2, lane.h + 2);
  }
  pen.restore();
}

function label(pen, text, x, y, room, px) {
  if (room < 24) return;
  pen.font = `${px}px system-ui, sans-serif`;
  pen.textAlign = "left";
  let shown = text;
  if (pen.measureText(shown).width > room) {
    const letters = Math.floor((room / pen.measureText(shown).width) * shown.length) - 1;
    if (letters < 3) return;
    shown = shown.slice(0, letters) + "…";
  }
  if (px < 11) pen.fillStyle = colour("--ink");
  pen.fillText(shown, x, y);
}

function hitTimeline(point, view) {
  if (point.x < GUTTER) return null;
  const lane = Object.entries(lanes()).find(([, l]) => point.y >= l.y && point.y <= l.y + l.h);
  if (!lane) return null;
  const cycle = view.cycle(point.x), slack = 2 * (state.to - state.from) / (view.width - GUTTER);
  if (lane[0] === "layers") {
    const row = Math.floor((point.y - lane[1].y) / ROW);
    const i = state.delegate.layers.findIndex((l) => l.row === row && cycle >= l.shownStart && cycle <= l.end);
    if (i < 0) return null;
    const l = state.delegate.layers[i];
    return { op: l.operations[l.operations.length - 1], text: `layer ${i}: ${l.name}\n${shape(l.ifm)} → ${shape(l.ofm)}\n${grouped(l.cycles)} cycles` };
  }
  const op = state.delegate.operations.find((o) => isDma(o) === (lane[0] === "dma") && cycle >= o.start - slack && cycle <= o.end + slack);
  return op ? { op: op.index, text: operationTip(op) } : null;
}

function operationTip(op) {
  const d = state.delegate;
  const what = isDma(op) ? `${grouped(op.bytes)} bytes` : `${shape(op.ifm.shape)} → ${shape(op.ofm.shape)}`;
  return `#${op.index} ${op.title}\n${what}\n${grouped(op.cycles)} cycles, ${time(d, op.cycles)}\nbound by ${op.bound}: ${BOUND_TEXT[op.bound]}`;
}

chart(byId("timeline-canvas"), () => lanes().dma.y + lanes().dma.h + 6 + AXIS, drawTimeline, hitTimeline);
on("delegate", () => {
  byId("legend").replaceChildren(...KINDS.map((k) => make("span", {}, make("i", { style: `background:var(--${k})` }), `${k}: ${BOUND_TEXT[k]}`)));
});
