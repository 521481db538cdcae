// Memory over time: every live range as a rectangle, time across, addresses up; one lane for each region of the NPU.
const LANE_HEIGHT = 190;
const LANE_GAP = 14;

function memoryLanes() {
  const d = state.delegate;
  const sizes = { 1: d.scratch_bytes, 2: d.fast_scratch_bytes };
  const regions = [...new Set(d.live_ranges.map((r) => r.region))].filter((r) => r !== "shram").sort();
  return regions.map((region, i) => ({
    region,
    y: 8 + i * (LANE_HEIGHT + LANE_GAP),
    bytes: sizes[region] || Math.max(...d.live_ranges.filter((r) => r.region === region).map((r) => r.end)),
    title: region === 1 ? "scratch" : region === 2 ? "fast scratch" : `region ${region}`,
  }));
}

const rangeLayer = (range) => (range.layer === undefined ? null : state.delegate.layers[range.layer]);

function rangeTitle(range) {
  const layer = rangeLayer(range);
  if (range.input !== undefined) return `input ${range.input}`;
  const name = layer ? `${range.layer} ${layer.name}` : "";
  return range.output !== undefined ? `output ${range.output}: ${name}` : range.kind === "feature map" ? name : `${range.kind} of ${name}`;
}

function drawMemory(pen, view) {
  const d = state.delegate;
  for (const lane of memoryLanes()) {
    laneTitle(pen, lane.title, lane.y + 14, size(lane.bytes));
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, lane.y, view.width - GUTTER, LANE_HEIGHT);
    pen.clip();
    pen.fillStyle = colour("--ground");
    pen.fillRect(GUTTER, lane.y, view.width - GUTTER, LANE_HEIGHT);
    for (const range of d.live_ranges) {
      if (range.region !== lane.region || range.to < state.from || range.from > state.to) continue;
      const box = rangeBox(range, lane, view);
      const layer = rangeLayer(range);
      const dim = state.matches && !(layer && layer.operations.some((i) => state.matches.has(i)));
      pen.globalAlpha = dim ? 0.2 : 0.8;
      pen.fillStyle = colour(RANGE_COLOURS[range.kind]);
      pen.fillRect(box.x, box.y, box.w, box.h);
      pen.globalAlpha = 1;
      pen.strokeStyle = colour("--panel");
      pen.lineWidth = 1;
      pen.strokeRect(box.x, box.y, box.w, box.h);
      if (box.h > 11) {
        pen.fillStyle = "#fff";
        label(pen, rangeTitle(range), Math.max(box.x, GUTTER) + 3, box.y + Math.min(box.h - 3, 12), Math.min(box.x + box.w, view.width) - Math.max(box.x, GUTTER) - 6, 11);
      }
    }
    if (state.selected !== null && operation(state.selected)) {
      pen.fillStyle = colour("--ink");
      pen.globalAlpha = 0.5;
      pen.fillRect(view.x(operation(state.selected).start), lane.y, 1, LANE_HEIGHT);
      pen.globalAlpha = 1;
    }
    pen.restore();
  }
}

function rangeBox(range, lane, view) {
  const x = view.x(range.from), h = ((range.end - range.begin) / lane.bytes) * LANE_HEIGHT;
  return { x, w: Math.max(view.x(range.to) - x, 1), y: lane.y + LANE_HEIGHT - (range.end / lane.bytes) * LANE_HEIGHT, h: Math.max(h, 1) };
}

function hitMemory(point, view) {
  const lane = memoryLanes().find((l) => point.y >= l.y && point.y <= l.y + LANE_HEIGHT);
  if (!lane || point.x < GUTTER) return null;
  const inside = (range) => {
    if (range.region !== lane.region) return false;
    const b = rangeBox(range, lane, view);
    return point.x >= b.x && point.x <= b.x + b.w && point.y >= b.y && point.y <= b.y + b.h;
  };
  const range = state.delegate.live_ranges.filter(inside).pop();
  if (!range) return null;
  const layer = rangeLayer(range);
  return { op: layer ? layer.operations[layer.operations.length - 1] : null,
    text: `${rangeTitle(range)}\n${range.kind}, ${grouped(range.end - range.begin)} bytes at ${grouped(range.begin)}\n${time(state.delegate, range.from)} to ${time(state.delegate, range.to)}` };
}

chart(byId("memory-canvas"), () => memoryLanes().length * (LANE_HEIGHT + LANE_GAP) + AXIS + 2, drawMemory, hitMemory);
on("delegate", () => {
  byId("memory-legend").replaceChildren(...Object.entries(RANGE_COLOURS).map(([kind, c]) => make("span", {}, make("i", { style: `background:var(${c})` }), kind)));
});
