// The server's API: answers as values, problems as objects {title, detail, fix, known, code}.

export class ProblemError extends Error {
  constructor(problem) {
    super(problem.title);
    this.problem = problem;
  }
}

const lost = {
  code: 'unreachable', title: 'The server does not answer',
  fix: 'Is the board on, and its container running? The page reconnects by itself; then classify again.',
};

async function call(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new ProblemError(lost);
  }
  let body = {};
  try {
    body = await response.json();
  } catch {
    if (response.ok) throw new ProblemError(lost);
  }
  if (!response.ok) throw new ProblemError(body.title ? body : {code: String(response.status), title: `The server answered ${response.status}`});
  return body;
}

export const getChecks = () => call('/api/checks');
export const getModels = () => call('/api/models');
export const getModel = id => call(`/api/models/${id}`);
export const getSamples = () => call('/api/samples');
export const getStatus = () => call('/api/status');
export const removeModel = id => call(`/api/models/${id}`, {method: 'DELETE'});

export function addModel(program, labels) {
  const form = new FormData();
  form.append('program', program);
  if (labels) form.append('labels', labels);
  return call('/api/models', {method: 'POST', body: form});
}

export async function classify(item, model) {
  const form = new FormData();
  form.append('image', item.file, item.name);
  const started = performance.now();
  const query = new URLSearchParams({id: item.id, crop: '1', model});
  const result = await call(`/api/classify?${query}`, {method: 'POST', body: form});
  // What the server cannot see: the way there and back, which its user waits for too.
  const total = performance.now() - started;
  const upload = Math.max(0, total - result.time_ms.total + result.time_ms.receive);
  result.time_ms = {...result.time_ms, receive: upload, total};
  return result;
}

/** Listens to the server's events; `on` has a function per event, and `connected(true|false)`. */
export function listen(on) {
  const source = new EventSource('/api/events');
  for (const name of ['hello', 'queue', 'job', 'board', 'models'])
    source.addEventListener(name, event => on[name]?.(JSON.parse(event.data)));
  source.onopen = () => on.connected(true);
  source.onerror = () => on.connected(false);
  return () => source.close();
}
