// The file itself: methods, plan, segments, compile specs.
(() => {
  const box = byId("file-facts");
  const f = report.format;
  box.append(facts([["file", report.file], ["bytes", grouped(report.bytes)],
    ["format", `${f.identifier}${f.header_bytes ? `, extended header of ${f.header_bytes} bytes, program ${grouped(f.program_bytes)} bytes` : ", no extended header"}`],
    ["segments", report.segments.filter((s) => s.bytes).map((s) => `${grouped(s.bytes)} bytes at ${grouped(f.segment_base + s.offset)}`).join("; ")],
    ["constants", report.constants || ""], ["named data", report.named_data.map((n) => `${n.key} (${grouped(n.bytes)} bytes)`).join("; ")],
    ["constant methods", report.methods.filter((m) => m.constant !== undefined).map((m) => `${m.name} = ${m.constant}`).join(", ")]]));
  const tensor = (t) => (t.dtype ? `${t.dtype} [${t.shape.join(", ")}]${t.scale ? `, scale ${t.scale.toPrecision(6)}, zero point ${t.zero_point}` : ""}` : `${t.kind} ${t.value}`);
  for (const method of report.methods.filter((m) => m.constant === undefined)) {
    box.append(make("h2", {}, `Method ${method.name}`), facts([...method.inputs.map((t, i) => [`input ${i}`, tensor(t)]), ...method.outputs.map((t, i) => [`output ${i}`, tensor(t)])]));
    const plan = method.plan.map((i) => `${String(i.index).padStart(4)}  ${i.text}${i.built_in === false ? "   (not built in)" : ""}`).join("\n");
    box.append(make("h2", {}, "Plan"), make("pre", {}, plan));
  }
  for (const d of report.delegates) {
    box.append(make("h2", {}, `Delegate ${d.index} of ${d.method}`), facts([["backend", d.backend], ["target", d.target], ["memory mode", d.memory_mode], ["system", d.system_config],
      ["payload", `${d.payload.location}, ${grouped(d.payload.bytes)} bytes`], ["blocks", (d.payload.blocks || []).map((b) => `${b.name} ${grouped(b.bytes)}`).join(", ")],
      ["commands", d.command_bytes && `${grouped(d.command_bytes)} bytes`], ["scratch", d.scratch_bytes !== undefined && `${grouped(d.scratch_bytes)} bytes`],
      ["fast scratch", d.fast_scratch_bytes !== undefined && `${grouped(d.fast_scratch_bytes)} bytes`], ...Object.entries(d.compile_specs), ["problem", d.problem]]));
  }
})();
