import {useEffect, useRef, useState} from 'preact/hooks';
import * as api from './api.js';

/** Choosing: by file, by drop anywhere, by paste, by camera, or one of the samples. */
export function Picker({onFiles, onClassify, current, ready, label, busy}) {
  const [over, setOver] = useState(false);
  const [samples, setSamples] = useState([]);
  const file = useRef(), camera = useRef();

  useEffect(() => {
    api.getSamples().then(({samples}) => setSamples(samples)).catch(() => {});
    const drop = event => {
      event.preventDefault();
      setOver(false);
      onFiles(event.dataTransfer?.files ?? []);
    };
    const dragover = event => {
      event.preventDefault();
      setOver(true);
    };
    const leave = event => {
      if (!event.relatedTarget) setOver(false);
    };
    const paste = event => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length > 0) onFiles(files);
    };
    const listeners = {drop, dragover, dragleave: leave, paste};
    for (const [name, listener] of Object.entries(listeners)) document.addEventListener(name, listener);
    return () => {
      for (const [name, listener] of Object.entries(listeners)) document.removeEventListener(name, listener);
    };
  }, []);

  const take = event => {
    onFiles(event.currentTarget.files);
    event.currentTarget.value = '';  // the same file may be chosen again
  };
  const sample = async ({name, url}) => {
    const response = await fetch(url);
    if (response.ok) onFiles([new File([await response.blob()], name)]);
  };

  return (
    <>
      <div class={`drop${over ? ' over' : ''}`}>
        {current
          ? <img src={current.url} alt={`Chosen picture: ${current.name}`} onError={event => event.currentTarget.classList.add('broken')} onLoad={event => event.currentTarget.classList.remove('broken')} />
          : <p>Drop a picture here, paste one, or choose below.</p>}
      </div>
      <div class="row">
        <button type="button" onClick={() => file.current.click()}>Choose…</button>
        <button type="button" onClick={() => camera.current.click()}>Take a photo</button>
        <input ref={file} id="file" class="sr-only" type="file" accept="image/*,.npy,.bin" multiple onChange={take} tabIndex={-1} aria-label="Choose pictures" />
        <input ref={camera} class="sr-only" type="file" accept="image/*" capture="environment" onChange={take} tabIndex={-1} aria-label="Take a photo" />
        <button type="button" class="primary" id="classify" disabled={!ready} aria-busy={busy} onClick={onClassify}>{label}</button>
      </div>
      {samples.length > 0 && (
        <ul class="samples" aria-label="Sample pictures">
          {samples.map(s => (
            <li key={s.name}><button type="button" onClick={() => sample(s)} title={s.name}><img src={s.url} alt={`Sample ${s.name}`} loading="lazy" width="56" height="56" /></button></li>
          ))}
        </ul>
      )}
    </>
  );
}
