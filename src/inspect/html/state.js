// What is shown now: delegate, selection, search, the stretch of time in view. Views register what to do when it changes.
const report = JSON.parse(byId("data").textContent);
const state = { delegate: null, selected: null, query: "", matches: null, from: 0, to: 1 };
const listeners = { delegate: [], selection: [], search: [], view: [] };
const on = (what, fn) => listeners[what].push(fn);
const changed = (what) => listeners[what].forEach((fn) => fn());

function operationText(op) {
  if (op.searchText) return op.searchText;
  const parts = [`#${op.index}`, op.title, op.kind, op.bound, `layer ${op.layer}`];
  for (const map of [op.ifm, op.ifm2, op.ofm]) {
    if (map && map.shape) parts.push(shape(map.shape), map.shape.join("x"), map.type, map.layout, `region ${map.region}`);
  }
  op.searchText = parts.join(" ").toLowerCase();
  return op.searchText;
}

// Every word must be found. An empty query matches nothing in particular: `matches` is null.
function search(query) {
  state.query = query;
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  state.matches = null;
  if (words.length && state.delegate) {
    const found = (state.delegate.operations || []).filter((op) => words.every((word) => operationText(op).includes(word)));
    state.matches = new Set(found.map((op) => op.index));
  }
  changed("search");
}

function select(index, reveal) {
  state.selected = index;
  if (reveal && index !== null) {
    const op = operation(index);
    const width = state.to - state.from;
    if (op.end < state.from || op.start > state.to) setView(op.start - width / 2, op.start + width / 2);
  }
  changed("selection");
}

const operation = (index) => state.delegate.byIndex.get(index);

function setView(from, to) {
  const all = state.delegate.cycles_total;
  const width = Math.min(Math.max(to - from, all / 20000, 20), all);
  const start = Math.min(Math.max(from, 0), all - width);
  state.from = start;
  state.to = start + width;
  changed("view");
}
function zoom(factor, at) {
  const centre = at ?? (state.from + state.to) / 2;
  setView(centre - (centre - state.from) * factor, centre + (state.to - centre) * factor);
}

// Layers of a cascade run at the same time: each gets the lowest row that is free when it begins. Returns the number of rows.
function stack(layers) {
  const mostRows = 7, free = [];
  for (const layer of [...layers].sort((a, b) => a.shownStart - b.shownStart)) {
    let row = free.findIndex((end) => end <= layer.shownStart);
    if (row < 0) row = free.length < mostRows ? free.length : free.indexOf(Math.min(...free));
    free[row] = layer.end;
    layer.row = row;
  }
  return Math.max(free.length, 1);
}

function chooseDelegate(number) {
  state.delegate = report.delegates[number] || null;
  state.selected = null;
  if (state.delegate && state.delegate.operations) {
    state.delegate.byIndex = new Map(state.delegate.operations.map((op) => [op.index, op]));
    for (const layer of state.delegate.layers) {
      // On the timeline a layer begins with its first kernel, not with the copy of its weights long before.
      const kernels = layer.operations.map(operation).filter((op) => op.bound !== "dma");
      layer.shownStart = kernels.length ? Math.min(...kernels.map((op) => op.start)) : layer.start;
    }
    state.delegate.layerRows = stack(state.delegate.layers);
    state.from = 0;
    state.to = state.delegate.cycles_total;
  }
  changed("delegate");
  search(state.query);
}
