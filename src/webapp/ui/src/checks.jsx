import {Problem} from './result.jsx';

const marks = {ok: ['✓', 'ok'], warning: ['!', 'warning'], failed: ['✕', 'failed']};

export function Checks({checks, onAgain}) {
  const sum = !checks ? 'Looking at the board…' : checks.problem ? 'not known'
    : checks.failed === 0 && checks.warnings === 0 ? 'All is well.'
      : [checks.failed && `${checks.failed} failed`, checks.warnings && `${checks.warnings} ${checks.warnings === 1 ? 'warning' : 'warnings'}`].filter(Boolean).join(', ');
  return (
    <>
      <div class="row between">
        <h2 id="checks-title">Board checks</h2>
        <button type="button" onClick={onAgain} disabled={checks?.busy}>Check again</button>
      </div>
      <p id="checks-sum" class="sum" data-state={!checks ? 'unknown' : checks.failed ? 'failed' : checks.warnings ? 'warning' : 'ok'}>{sum}</p>
      {checks?.problem && <Problem problem={checks.problem} />}
      <ul class="checklist">
        {checks?.checks.map(check => (
          <li key={check.id} data-check={check.id} data-state={check.state}>
            <details>
              <summary><span class="mark" aria-hidden="true">{marks[check.state][0]}</span><span>{check.title}<span class="sr-only">: {marks[check.state][1]}</span></span></summary>
              <dl>
                <dt>Looked at</dt><dd>{check.looked_at}</dd>
                <dt>Found</dt><dd>{check.found}</dd>
                {check.means && <><dt>It means</dt><dd>{check.means}</dd></>}
                {check.fix && <><dt>What to do</dt><dd><pre tabIndex={0}>{check.fix}</pre></dd></>}
              </dl>
            </details>
          </li>
        ))}
      </ul>
    </>
  );
}
