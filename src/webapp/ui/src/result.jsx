export function Problem({problem}) {
  return (
    <div class="problem" role="alert">
      <h3>{problem.title}</h3>
      {problem.detail && <p class="detail">{problem.detail}</p>}
      {problem.fix && <><h4>What to do</h4><pre tabIndex={0}>{problem.fix}</pre></>}
      {problem.known?.length > 0 && <details><summary>What is known</summary><pre tabIndex={0}>{problem.known.join('\n')}</pre></details>}
      {problem.code && <p class="code">Code: {problem.code}</p>}
    </div>
  );
}

const states = {
  chosen: () => 'Press Classify.',
  sending: () => 'Sending the picture…',
  queued: item => `Waiting: ${item.ahead} before it${item.waitMs > 500 ? `, about ${(item.waitMs / 1000).toFixed(0)} s` : ''}…`,
  staging: () => 'Writing to the board’s memory…',
  running: () => 'Running on the Cortex-M33 and the NPU…',
};

const percent = p => `${(p * 100).toFixed(1)} %`;
const labelOf = t => t.label ?? `class ${t.class}`;

export function Result({item, loading, hasModel}) {
  if (!item && loading) return <p class="state">Loading…</p>;
  if (!item) return <p class="state">{hasModel ? 'No picture yet.' : 'No model yet: upload one, or start the server with --program.'}</p>;
  if (item.state === 'failed') return <Problem problem={item.problem} />;
  if (item.state !== 'done') return <p class="state" role="status" data-state={item.state}>{item.state !== 'chosen' && <span class="spinner" aria-hidden="true" />}{states[item.state](item)}</p>;
  const {top, scores, crop, time_ms: time} = item.result;
  const raw = scores === 'raw';
  const [best] = top;
  const most = raw ? Math.max(1, ...top.map(t => Math.abs(t.raw))) : 1;
  return (
    <div class="result">
      <div class="best">
        {crop && <figure><img src={crop} width="112" height="112" alt="The part of the picture that the network saw" /><figcaption>as the network saw it</figcaption></figure>}
        {best
          ? <p class="top1"><strong>{labelOf(best)}</strong> <span class="probability">{raw ? best.raw : percent(best.probability)}</span></p>
          : <p>The network has no output that scores classes.</p>}
      </div>
      <ol class="bars">
        {top.map(t => (
          <li key={t.class}>
            <span class="label">{labelOf(t)}</span>
            <span class="value">{raw ? t.raw : percent(t.probability)}</span>
            <meter min="0" max={most} value={raw ? Math.abs(t.raw) : t.probability} aria-label={labelOf(t)} />
          </li>
        ))}
      </ol>
      <p class="took">{Math.round(time.total)} ms in all, {Math.round(time.run)} ms on the Cortex-M33 and NPU.</p>
    </div>
  );
}

export function Gallery({items, selected, onSelect}) {
  if (items.length === 0) return <p class="state">Pictures of this visit appear here.</p>;
  return (
    <ul class="gallery">
      {items.map(item => {
        const best = item.result?.top[0];
        const text = item.state === 'done' ? (best ? labelOf(best) : 'done') : item.state === 'failed' ? 'failed' : item.state === 'chosen' ? 'not yet' : item.state === 'queued' ? `${item.ahead} before it` : `${item.state}…`;
        return (
          <li key={item.id}>
            <button type="button" aria-pressed={item.id === selected} data-state={item.state} onClick={() => onSelect(item.id)} title={item.name}>
              <img src={item.result?.crop ?? item.url} alt="" width="88" height="88" onError={event => event.currentTarget.classList.add('broken')} />
              <span>{text}</span><span class="sr-only">, {item.name}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
