import {useRef, useState} from 'preact/hooks';
import * as api from './api.js';
import {Problem} from './result.jsx';

/** Choosing a model, and bringing one's own. */
export function Models({models, loading, model, onChoose, onChanged}) {
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const program = useRef(), labels = useRef();
  const current = models.find(m => m.id === model);

  const upload = async event => {
    event.preventDefault();
    if (!program.current.files[0]) {
      setProblem({title: 'Choose a .pte file first'});
      return;
    }
    setBusy(true);
    setProblem(null);
    try {
      const added = await api.addModel(program.current.files[0], labels.current.files[0]);
      await onChanged();
      onChoose(added.id);
      event.target.reset?.();
    } catch (error) {
      setProblem(error.problem ?? {title: String(error)});
    }
    setBusy(false);
  };
  const remove = async () => {
    await api.removeModel(model).catch(() => {});
    onChanged();
  };

  return (
    <div class="models">
      <label for="model">Model</label>
      <div class="row">
        <select id="model" value={model} onChange={event => onChoose(event.currentTarget.value)} disabled={models.length === 0}>
          {models.length === 0 && <option value="">{loading ? 'Loading…' : 'none'}</option>}
          {models.map(m => <option key={m.id} value={m.id}>{m.name}{m.uploaded ? ' (uploaded)' : ''}</option>)}
        </select>
        {current?.uploaded && <button type="button" onClick={remove}>Remove</button>}
      </div>
      {current && <p class="hint">{current.target ?? 'no NPU'}, {(current.bytes / 1e6).toFixed(1)} MB, {current.input.type}{current.classes ? `, ${current.classes} classes` : ''}. {current.note}</p>}
      <details>
        <summary>Bring your own</summary>
        <form onSubmit={upload}>
          <label for="pte">Program (.pte for ethos-u65-256)</label>
          <input id="pte" ref={program} type="file" accept=".pte" />
          <label for="labels">Labels, one a line (optional)</label>
          <input id="labels" ref={labels} type="file" accept=".txt,text/plain" />
          <button type="submit" disabled={busy}>{busy ? 'Sending…' : 'Upload'}</button>
        </form>
        {problem && <Problem problem={problem} />}
      </details>
    </div>
  );
}
