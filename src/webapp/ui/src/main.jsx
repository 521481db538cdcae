import {render} from 'preact';
import {App} from './app.jsx';
import './style.css';

const root = document.getElementById('app');
root.textContent = '';
render(<App />, root);
