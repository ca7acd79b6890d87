// Runbook Ask, in the browser: everything here works without it, this only makes it quicker.
'use strict';

const byId = (id) => document.getElementById(id);
const box = () => byId('ui:q');
const say = (text) => { byId('ui:live').textContent = text; };

// --- The box --------------------------------------------------------------------------------

document.addEventListener('keydown', (event) => {
  const typing = event.target.closest('input, textarea, select, [contenteditable]');
  if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    box().focus();
    box().select();
  } else if (event.key === 'Escape' && event.target === box()) {
    hideNear();
  } else if (event.key === 'ArrowDown' && event.target === box()) {
    const first = byId('ui:near').querySelector('a');
    if (first) { event.preventDefault(); first.focus(); }
  } else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && event.target.closest('.near')) {
    event.preventDefault();
    const next = event.key === 'ArrowDown' ? event.target.nextElementSibling : event.target.previousElementSibling;
    (next || box()).focus();
  }
});

// A box of one line drops line ends; words of a pasted alert must not run into each other.
document.addEventListener('paste', (event) => {
  if (event.target !== box()) return;
  const text = event.clipboardData.getData('text');
  if (!/[\r\n]/.test(text)) return;
  event.preventDefault();
  const { selectionStart: from, selectionEnd: to, value } = box();
  const flat = text.replace(/\s*[\r\n]+\s*/g, ' ').trim();
  box().value = value.slice(0, from) + flat + value.slice(to);
  box().setSelectionRange(from + flat.length, from + flat.length);
});

// --- Asking without a reload ----------------------------------------------------------------

let running = null;

async function show(url, push) {
  if (running) running.abort();
  running = new AbortController();
  const own = running;
  hideNear();
  document.documentElement.classList.add('busy');
  try {
    const response = await fetch(url, { signal: own.signal, headers: { accept: 'text/html' } });
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const main = page.querySelector('main');
    if (!main || own !== running) throw new Error('no page');
    if (push) history.pushState(null, '', url);
    byId('ui:main').replaceWith(document.adoptNode(main));
    document.title = page.title;
    box().value = page.getElementById('ui:q').value;
    ready();
    scrollTo(0, 0);
    const heading = byId('ui:answer') || byId('ui:main').querySelector('h1');
    say(heading ? `${heading.textContent} to: ${box().value}` : '');
    byId('ui:main').focus({ preventScroll: true });
  } catch (error) {
    if (error.name !== 'AbortError') location.assign(url);
  } finally {
    if (own === running) document.documentElement.classList.remove('busy');
  }
}

document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.matches('.ask')) {
    event.preventDefault();
    if (!box().value.trim()) return;
    show(`/?${new URLSearchParams(new FormData(form))}`, true);
  } else if (form.matches('.report')) {
    event.preventDefault();
    report(form, event.submitter);
  }
});

addEventListener('popstate', () => {
  if (location.pathname === '/' && !location.hash) show(location.href, false);
});

// --- Reports --------------------------------------------------------------------------------

async function report(form, button) {
  const fields = Object.fromEntries(new FormData(form));
  fields.verdict = 'wrong';
  for (const name of ['scope', 'note', 'page']) if (!fields[name]) delete fields[name];
  button = button || form.querySelector('button');
  button.disabled = true;
  let text = 'The report could not be sent. Try again.';
  let ok = false;
  try {
    const response = await fetch(form.getAttribute('action'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(fields),
    });
    ok = response.ok;
    if (ok) text = 'Thank you: the report is kept.';
    else text = `Not kept: ${(await response.json()).error.message}.`;
  } catch (error) {
    // The text says it.
  }
  let note = form.querySelector('.done, .failed');
  if (!note) {
    note = document.createElement('span');
    button.after(note);
  }
  note.className = ok ? 'done' : 'failed';
  note.textContent = text;
  say(text);
  if (ok) form.querySelector('details').open = false;
  button.disabled = false;
}

// --- Copying --------------------------------------------------------------------------------

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (error) {
    // Without HTTPS there is no clipboard; the old way may still work.
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'quiet';
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

function addCopyButtons() {
  for (const block of document.querySelectorAll('.code')) {
    const head = block.querySelector('.code-head');
    if (!head || head.querySelector('.copy')) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      const code = block.querySelector('code').textContent.replace(/\n$/, '');
      const done = await copy(code);
      button.textContent = done ? 'Copied' : 'Select it and copy by hand';
      say(done ? 'Copied' : 'Copying is not allowed here');
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
    head.append(button);
  }
}

// --- Sections while typing: only as long as they come within 50 ms ---------------------------

const QUICK_MS = 50;
let slow = 0;
let timer = 0;
let lookup = null;

function hideNear() {
  const near = byId('ui:near');
  near.hidden = true;
  near.replaceChildren();
  clearTimeout(timer);
  if (lookup) lookup.abort();
}

document.addEventListener('input', (event) => {
  if (event.target !== box()) return;
  clearTimeout(timer);
  const text = box().value.trim();
  if (text.length < 3 || text.length > 200 || slow >= 3) { hideNear(); return; }
  timer = setTimeout(() => near(text), 120);
});

async function near(text) {
  if (lookup) lookup.abort();
  lookup = new AbortController();
  const started = performance.now();
  try {
    const query = new URLSearchParams({ q: text, k: '5' });
    const scope = document.querySelector('.ask input[name="scope"]');
    if (scope) query.set('scope', scope.value);
    const response = await fetch(`/v1/search?${query}`, { signal: lookup.signal });
    if (!response.ok) return;
    const { results } = await response.json();
    slow = performance.now() - started > QUICK_MS ? slow + 1 : 0;
    if (box().value.trim() !== text || document.activeElement !== box()) return;
    const links = results.map((found) => {
      const link = document.createElement('a');
      const path = found.path.split('/').map(encodeURIComponent).join('/');
      const repo = found.repo ? `&repo=${encodeURIComponent(found.repo)}` : '';
      link.href = `/read/${path}?lines=${found.lines[0]}-${found.lines[1]}${repo}#cited-lines`;
      link.textContent = found.heading;
      const where = document.createElement('span');
      where.textContent = found.path;
      link.append(where);
      return link;
    });
    const list = byId('ui:near');
    list.replaceChildren(...links);
    list.hidden = links.length === 0;
  } catch (error) {
    // Aborted, or the server is away: the box works without it.
  }
}

document.addEventListener('click', (event) => {
  if (!event.target.closest('.near, .ask')) hideNear();
});

// --------------------------------------------------------------------------------------------

function ready() {
  addCopyButtons();
}
ready();
