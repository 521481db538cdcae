import {useEffect, useState} from 'preact/hooks';
import * as api from './api.js';

// In the order in which they happen. Those of the M33 are by its own clock, which on a virtual board is not the wall's.
const phases = [
  ['receive', 'upload'], ['queue', 'queue'], ['decode', 'decode'], ['resize', 'resize'], ['wait', 'wait for the board'], ['stage_program', 'stage program'], ['stage', 'stage picture'],
  ['rpmsg', 'RPMsg'], ['crc', 'CRC'], ['load', 'load'], ['input', 'input'], ['quantize', 'quantize'], ['npu', 'NPU'], ['dequantize', 'dequantize'],
];
const MACS = 256;  // of an Ethos-U65-256, a cycle

export function Analysis({item}) {
  const [model, setModel] = useState(null);
  const id = item?.result?.model;
  useEffect(() => {
    setModel(null);
    let here = true;
    if (id) api.getModel(id).then(m => here && setModel(m)).catch(() => {});
    return () => here = false;
  }, [id]);
  if (!item?.result) return <p class="state">Classify a picture to see where the time goes.</p>;
  const time = item.result.time_ms;
  const shown = phases.map(([key, name], index) => ({key, name, index, ms: time[key] ?? 0})).filter(p => p.ms > 0.005);
  const sum = shown.reduce((total, p) => total + p.ms, 0);
  const cycles = item.result.npu_cycles;
  const macs = model?.layers.reduce((total, layer) => total + layer.macs, 0) ?? 0;
  return (
    <div class="analysis">
      <h3>Time by phase</h3>
      <Bar parts={shown} sum={sum} />
      <ul class="legend">
        {shown.map(p => <li key={p.key}><span class={`swatch c${p.index}`} aria-hidden="true" />{p.name} <b>{p.ms.toFixed(p.ms < 10 ? 2 : 1)} ms</b></li>)}
      </ul>
      <h3>NPU</h3>
      <p>{cycles ? `${cycles.toLocaleString('en')} cycles` : 'no cycles counted'}{cycles && macs ? `: ${(macs / 1e6).toFixed(1)} million MACs, the array is used to ${(100 * macs / (cycles * MACS)).toFixed(1)} %` : ''}.</p>
      {model?.layers.length > 0 && <Layers layers={model.layers} total={model.estimated_cycles} />}
    </div>
  );
}

/** A stacked bar, drawn so that no style attribute is needed. */
function Bar({parts, sum}) {
  let at = 0;
  return (
    <svg class="stack" viewBox="0 0 1000 40" preserveAspectRatio="none" role="img" aria-label={`Phases: ${parts.map(p => `${p.name} ${p.ms.toFixed(1)} milliseconds`).join(', ')}`}>
      {parts.map(p => {
        const width = 1000 * p.ms / sum, x = at;
        at += width;
        return <rect key={p.key} class={`c${p.index}`} x={x} y="0" width={width} height="40"><title>{`${p.name}: ${p.ms.toFixed(2)} ms`}</title></rect>;
      })}
    </svg>
  );
}

function Layers({layers, total}) {
  const [all, setAll] = useState(false);
  const sorted = layers.map((layer, index) => ({...layer, index})).sort((a, b) => b.cycles - a.cycles);
  const rows = all ? [...sorted].sort((a, b) => a.index - b.index) : sorted.slice(0, 8);
  const most = sorted[0].cycles || 1;
  return (
    <>
      <div class="row between">
        <h3>{all ? `All ${layers.length} layers` : 'Layers that take longest'}</h3>
        <button type="button" aria-expanded={all} onClick={() => setAll(!all)}>{all ? 'Only the longest' : `All ${layers.length}`}</button>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Layers of the network">
        <table>
          <thead><tr><th scope="col">Layer</th><th scope="col">Output</th><th scope="col">Cycles (estimated)</th><th scope="col">Bound by</th></tr></thead>
          <tbody>
            {rows.map(layer => (
              <tr key={layer.index}>
                <td>{layer.index + 1}. {layer.name}</td><td>{layer.output}</td>
                <td><svg class="mini" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="c12" width={100 * layer.cycles / most} height="10" /></svg> {layer.cycles.toLocaleString('en')} ({(100 * layer.cycles / (total || 1)).toFixed(1)} %)</td>
                <td>{layer.bound}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
