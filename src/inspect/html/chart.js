// What both charts share: a canvas as sharp as the screen, time on the x axis, wheel, drag, hover and click.
const AXIS = 22;
const GUTTER = 92;

function chart(canvas, height, draw, hit) {
  let drag = null;
  const view = { width: 0, height: 0, x: (cycle) => GUTTER + ((cycle - state.from) / (state.to - state.from)) * (view.width - GUTTER) };
  view.cycle = (x) => state.from + ((x - GUTTER) / (view.width - GUTTER)) * (state.to - state.from);
  view.redraw = () => {
    if (!state.delegate || !state.delegate.operations) return;
    view.width = canvas.clientWidth;
    view.height = height();
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = view.height + "px";
    canvas.width = Math.round(view.width * ratio);
    canvas.height = Math.round(view.height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, view.width, view.height);
    axis(pen, view);
    draw(pen, view);
  };
  const local = (event) => ({ x: event.clientX - canvas.getBoundingClientRect().left, y: event.clientY - canvas.getBoundingClientRect().top });
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.altKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(state.from, view.cycle(local(event).x)));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, from: state.from, moved: false }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const cycles = ((drag.x - event.clientX) / (view.width - GUTTER)) * (state.to - state.from);
      drag.moved ||= Math.abs(event.clientX - drag.x) > 3;
      if (drag.moved) setView(drag.from + cycles, drag.from + cycles + (state.to - state.from));
      return;
    }
    const found = hit(local(event), view);
    tip(event, found && found.text);
  });
  canvas.addEventListener("pointerup", (event) => {
    const moved = drag && drag.moved;
    drag = null;
    if (moved) return;
    const found = hit(local(event), view);
    select(found ? found.op : null, false);
  });
  canvas.addEventListener("pointerleave", () => tip(null, null));
  for (const what of ["delegate", "selection", "search", "view"]) on(what, view.redraw);
  new ResizeObserver(view.redraw).observe(canvas);
  return view;
}

function axis(pen, view) {
  const span = state.to - state.from;
  const step = [1, 2, 5].flatMap((m) => Array.from({ length: 12 }, (_, e) => m * 10 ** e)).sort((a, b) => a - b).find((s) => span / s <= (view.width - GUTTER) / 90);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "alphabetic";
  for (let at = Math.ceil(state.from / step) * step; at <= state.to; at += step) {
    pen.fillStyle = colour("--line");
    pen.fillRect(view.x(at), 0, 1, view.height);
    pen.fillStyle = colour("--soft");
    pen.textAlign = view.x(at) > view.width - 40 ? "right" : "center";
    pen.fillText(time(state.delegate, at), Math.max(view.x(at), GUTTER + 14), view.height - 7);
  }
}

function laneTitle(pen, text, y, detail) {
  pen.textAlign = "left";
  pen.fillStyle = colour("--ink");
  pen.font = "12px system-ui, sans-serif";
  pen.fillText(text, 8, y);
  if (!detail) return;
  pen.fillStyle = colour("--soft");
  pen.font = "11px system-ui, sans-serif";
  pen.fillText(detail, 8, y + 15);
}

function tip(event, text) {
  const box = byId("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const right = event.clientX > window.innerWidth - 330;
  box.style.left = right ? "auto" : event.clientX + 14 + "px";
  box.style.right = right ? window.innerWidth - event.clientX + 14 + "px" : "auto";
  box.style.top = Math.min(event.clientY + 14, window.innerHeight - box.offsetHeight - 8) + "px";
}
