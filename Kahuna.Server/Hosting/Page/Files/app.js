// Signing in, the views, and the refresh: every two seconds while the page is seen and not paused.

import { CallError, forget, get, hasCredentials, signInAs, signInWith } from './api.js';
import { createCharts } from './charts.js';
import { byId, moment, setText, tick, visible } from './dom.js';
import { createKeys } from './keys.js';
import { createLocks } from './locks.js';
import { refreshOverview } from './overview.js';
import { learn } from './rights.js';
import { createSequences } from './sequences.js';
import { createSessions } from './sessions.js';
import { refreshSlow } from './slow.js';

const refreshMs = 2000;
const tickMs = 500;

// How the node begins its sentence when a call says nothing about its user: the form is answer enough.
const nothingShown = 'The request does not say who makes it';

const views = {
  overview: { refresh: refreshOverview },
  keys: createKeys(say, refresh),
  locks: createLocks(refresh),
  sequences: createSequences(refresh),
  sessions: createSessions(refresh),
  charts: createCharts(),
  slow: { refresh: refreshSlow },
};

let isSignedIn = false;
let isPaused = false;
let isRunning = false;
let isWanted = false;
let isByCertificate = false;
let timer = 0;

/** The message is about the refresh, and the next one that succeeds replaces it. */
let isPassing = false;

/** When what the view shows was answered; null: it shows nothing. */
let shownAt = null;

function viewName() {
  const name = location.hash.slice(1);
  return Object.hasOwn(views, name) ? name : 'overview';
}

/** Tells the user something, until the next thing to tell. */
function say(text, isBad = true) {
  const message = byId('message');
  setText(message, visible(text));
  message.className = isBad ? 'bad' : 'good';
  isPassing = false;
}

function showView() {
  const name = viewName();
  for (const other of Object.keys(views)) {
    byId(other).hidden = !isSignedIn || other !== name;
  }

  for (const link of byId('views').children) {
    if (link.hash === `#${name}`) {
      link.setAttribute('aria-current', 'page');
    } else {
      link.removeAttribute('aria-current');
    }
  }

  byId('views').hidden = byId('session').hidden = !isSignedIn;
  byId('sign-in').hidden = isSignedIn;
  document.title = isSignedIn ? `${byId(`${name}-title`).textContent} · Kahuna` : 'Sign in · Kahuna';
}

/** Asks for a user again; nothing of what was shown stays. */
function askForUser(sentence) {
  const hadFocus = byId('sign-in-form').contains(document.activeElement);
  isSignedIn = false;
  shownAt = null;
  forget();
  for (const view of Object.values(views)) {
    view.clear?.();
  }

  for (const body of document.querySelectorAll('tbody, #advice')) {
    body.replaceChildren();
  }

  showView();
  say(sentence);
  if (!hadFocus) {
    byId('user').focus();
  }
}

/** Finds out who the user is; without authentication that is anybody. */
async function enter() {
  try {
    const caller = await get('/v1/admin/whoami');
    learn(caller);
    isSignedIn = true;
    byId('sign-out').hidden = caller.method === 'none';
    isByCertificate = caller.method === 'certificate';
    setText(byId('sign-out'), isByCertificate ? 'Another user' : 'Sign out');
    setText(byId('who'), caller.method === 'none' ? 'No authentication' : visible(caller.user));
    byId('password').value = byId('token').value = '';
    say('');
    showView();
    await refresh();
  } catch (error) {
    if (!(error instanceof CallError)) {
      throw error;
    }

    if (error.status === 401) {
      askForUser(hasCredentials() || !error.message.startsWith(nothingShown) ? error.message : '');
    } else if (error.status === 0 || error.status === 503) {
      say(error.message);
      timer = setTimeout(enter, refreshMs);
    } else {
      askForUser(error.message);
    }
  }
}

/** Shows the view anew, once at a time; a wish in between is met right after. */
async function refresh() {
  isWanted = true;
  if (isRunning) {
    return;
  }

  clearTimeout(timer);
  isRunning = true;
  while (isWanted && isSignedIn) {
    isWanted = false;
    try {
      await views[viewName()].refresh();
      shownAt = new Date();
      if (isPassing && isPaused) {
        tellPause();
      } else if (isPassing) {
        say('');
      }
    } catch (error) {
      tellFailure(error);
    }
  }

  isRunning = false;
  schedule();
}

/** A page that nobody looks at for a day must not pass for the present. */
function ageOfShown() {
  return shownAt === null ? '' : ` What is shown is of ${moment(shownAt)}.`;
}

function tellPause() {
  say(`Paused.${ageOfShown()}`, false);
  isPassing = true;
}

function tellFailure(error) {
  if (error instanceof CallError && error.status === 401) {
    askForUser(error.message);
    return;
  }

  say((error instanceof CallError ? error.message : `The page cannot show an answer of the node: ${error.message}`)
    + ageOfShown());
  isPassing = true;
}

function schedule() {
  clearTimeout(timer);
  if (isSignedIn && !isPaused && !document.hidden) {
    timer = setTimeout(refresh, refreshMs);
  }
}

byId('sign-in-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const token = byId('token').value.trim();
  if (token !== '') {
    signInWith(token);
  } else if (byId('user').value !== '') {
    signInAs(byId('user').value, byId('password').value);
  } else {
    say('Type a user and a password, or a token.');
    byId('user').focus();
    return;
  }

  clearTimeout(timer);
  enter();
});

byId('pause').addEventListener('click', () => {
  isPaused = !isPaused;
  byId('pause').setAttribute('aria-pressed', String(isPaused));
  setText(byId('pause'), isPaused ? 'Go on' : 'Pause');
  if (isPaused) {
    tellPause();
  } else {
    say('');
    refresh();
  }
});

// A new document has nothing of what this one knew. The browser would show its certificate to it again.
byId('sign-out').addEventListener('click', () => {
  if (isByCertificate) {
    askForUser('');
  } else {
    location.reload();
  }
});

byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  byId('main').focus();
});

addEventListener('hashchange', () => {
  showView();
  byId(`${viewName()}-title`).focus();
  say('');
  isPassing = isPaused;
  shownAt = null;
  refresh();
});

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    clearTimeout(timer);
  } else if (isSignedIn && !isPaused) {
    refresh();
  }
});

setInterval(tick, tickMs);
enter();
