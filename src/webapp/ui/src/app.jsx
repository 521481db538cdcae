import {useCallback, useEffect, useReducer, useRef, useState} from 'preact/hooks';
import * as api from './api.js';
import {Analysis} from './analysis.jsx';
import {Checks} from './checks.jsx';
import {Models} from './models.jsx';
import {Picker} from './picker.jsx';
import {Gallery, Result} from './result.jsx';

const AT_ONCE = 3;  // requests; the board takes one picture at a time anyway
let counter = 0;

/** Pictures of this visit, newest first. state: chosen, sending, queued, staging, running, done, failed. */
function reduce(items, action) {
  switch (action.type) {
    case 'add': return [...action.items, ...items];
    case 'set': return items.map(item => item.id === action.id ? {...item, ...action.change} : item);
    case 'queue': {
      const position = new Map();
      let ahead = 0;
      for (const job of action.queue.order) {
        position.set(job.id, ahead);
        ahead += job.pictures;
      }
      return items.map(item => item.state === 'sending' && position.has(item.id)
        ? {...item, state: 'queued', ahead: position.get(item.id), waitMs: position.get(item.id) * action.queue.each_ms}
        : item.state === 'queued' && position.has(item.id)
          ? {...item, ahead: position.get(item.id), waitMs: position.get(item.id) * action.queue.each_ms} : item);
    }
    case 'phase': return items.map(item => item.id === action.id && !['done', 'failed'].includes(item.state) ? {...item, state: action.phase} : item);
  }
}

export function App() {
  const [items, dispatch] = useReducer(reduce, []);
  const [selected, select] = useState(null);
  const [models, setModels] = useState(null);  // null: not known yet
  const [model, setModel] = useState('');
  const [checks, setChecks] = useState(null);
  const [board, setBoard] = useState(null);
  const [connected, setConnected] = useState(true);
  const [said, say] = useState('');
  const everConnected = useRef(false);
  const latest = useRef({});
  latest.current = {items, model};

  const refreshModels = useCallback(() => api.getModels().then(({models}) => {
    setModels(models);
    setModel(now => models.some(m => m.id === now) ? now : models[0]?.id ?? '');
  }).catch(() => {}), []);
  const refreshChecks = useCallback(() => {
    setChecks(now => now && {...now, busy: true});
    return api.getChecks().then(setChecks).catch(error => setChecks({failed: 1, warnings: 0, checks: [], problem: error.problem}));
  }, []);

  useEffect(() => {
    refreshModels();
    refreshChecks();
    return api.listen({
      connected: ok => {
        setConnected(ok);
        if (ok && everConnected.current) {
          refreshModels();
          refreshChecks();
        }
        if (ok) everConnected.current = true;
      },
      hello: ({board}) => setBoard(board),
      board: now => {
        setBoard(now);
        refreshChecks();
      },
      models: refreshModels,
      queue: queue => dispatch({type: 'queue', queue}),
      job: ({id, phase}) => {
        if (phase === 'staging' || phase === 'running') dispatch({type: 'phase', id, phase});
      },
    });
  }, []);

  const add = useCallback(files => {
    const added = [...files].map(file => ({
      id: `p${Date.now().toString(36)}-${counter++}`, file, name: file.name || 'picture', url: URL.createObjectURL(file), state: 'chosen',
    }));
    if (added.length === 0) return;
    dispatch({type: 'add', items: added});
    select(added[0].id);
    say(added.length === 1 ? `${added[0].name} chosen` : `${added.length} pictures chosen`);
  }, []);

  const run = useCallback(async item => {
    dispatch({type: 'set', id: item.id, change: {state: 'sending', problem: null}});
    try {
      const result = await api.classify(item, latest.current.model);
      dispatch({type: 'set', id: item.id, change: {state: 'done', result}});
      const [best] = result.top;
      if (best) say(`${item.name}: ${best.label ?? `class ${best.class}`}${best.probability === null ? '' : `, ${(best.probability * 100).toFixed(1)} percent`}`);
    } catch (error) {
      const problem = error.problem ?? {title: String(error)};
      dispatch({type: 'set', id: item.id, change: {state: 'failed', problem}});
      say(`${item.name}: failed. ${problem.title}`);
      refreshChecks();
    }
  }, []);

  const current = items.find(item => item.id === selected);
  const waiting = items.filter(item => item.state === 'chosen');
  const again = current && (current.state === 'done' || current.state === 'failed') && waiting.length === 0;
  const busy = items.some(item => ['sending', 'queued', 'staging', 'running'].includes(item.state));
  const classify = () => {
    const todo = again ? [current] : [...waiting].reverse();
    if (todo.length > 0) select(todo[0].id);
    const next = () => {
      const item = todo.shift();
      return item ? run(item).then(next) : null;
    };
    for (let i = 0; i < AT_ONCE; ++i) next();
  };

  return (
    <>
      <header>
        <h1>NPU classifier</h1>
        <p class="board" data-state={board?.state ?? 'unknown'}>
          <span class="dot" aria-hidden="true" />
          {connected ? (board?.remoteproc ? `Cortex-M33 ${board.state}` : 'no remote processor') : 'reconnecting…'}
        </p>
      </header>
      {!connected && <p class="banner" role="status">The server does not answer. Reconnecting…</p>}
      <main>
        <section class="panel pick" aria-labelledby="pick-title">
          <h2 id="pick-title">Picture</h2>
          <Picker onFiles={add} onClassify={classify} current={current} ready={(waiting.length > 0 || again) && model !== ''}
            label={waiting.length > 1 ? `Classify ${waiting.length} pictures` : again ? 'Classify again' : 'Classify'} busy={busy} />
          <Models models={models ?? []} loading={models === null} model={model} onChoose={setModel} onChanged={refreshModels} />
        </section>
        <section class="panel answer" aria-labelledby="answer-title">
          <h2 id="answer-title">What the NPU saw</h2>
          <Result item={current} loading={models === null} hasModel={model !== ''} />
        </section>
        <section class="panel checks" aria-labelledby="checks-title">
          <Checks checks={checks} onAgain={refreshChecks} />
        </section>
        <section class="panel wide" aria-labelledby="analysis-title">
          <h2 id="analysis-title">Analysis</h2>
          <Analysis item={current} />
        </section>
        <section class="panel wide" aria-labelledby="history-title">
          <h2 id="history-title">This visit</h2>
          <Gallery items={items} selected={selected} onSelect={select} />
        </section>
      </main>
      <footer><p>API: <a href="/api/openapi.json">/api/openapi.json</a>, <a href="/metrics">/metrics</a>. Nothing leaves this board.</p></footer>
      <p class="sr-only" aria-live="polite" id="said">{said}</p>
    </>
  );
}
