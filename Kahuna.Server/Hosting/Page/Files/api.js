// Calls of the node that served this page. Who signs in is known to this tab alone, until it closes or signs out.

const patienceMs = 15000;
let authorization = null;

/** A call that ended without success. `status` is that of HTTP; 0: the node did not answer. */
export class CallError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function signInAs(user, password) {
  authorization = 'Basic ' + base64(new TextEncoder().encode(`${user}:${password}`));
}

export function signInWith(token) {
  authorization = `Bearer ${token}`;
}

export function forget() {
  authorization = null;
}

export function hasCredentials() {
  return authorization !== null;
}

/** Gets a path with the fields in its query; those that are undefined are left out. */
export function get(path, fields = {}) {
  return call('GET', path + query(fields));
}

export function remove(path, fields) {
  return call('DELETE', path + query(fields));
}

export function put(path, body) {
  return call('PUT', path, body);
}

function query(fields) {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '');
  return given.length === 0 ? '' : '?' + given.map(
    ([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
}

async function call(method, path, body) {
  const headers = { 'x-kahuna-page': '1' };
  if (authorization !== null) {
    headers.authorization = authorization;
  }

  if (body !== undefined) {
    headers['content-type'] = 'application/json';
  }

  let answer;
  let text;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      // With no user typed in, the browser is to show its client certificate, if it has one.
      credentials: authorization === null ? 'same-origin' : 'omit',
      redirect: 'error',
      signal: AbortSignal.timeout(patienceMs),
    });
    text = await answer.text();
  } catch {
    throw new CallError(0, 'This node does not answer. The page asks again.');
  }

  if (!answer.ok) {
    throw new CallError(answer.status, sentenceOf(answer, text));
  }

  return JSON.parse(text);
}

/** What the node says about the error, or what the status means. */
function sentenceOf(answer, text) {
  let sentence = text.trim();
  try {
    sentence = JSON.parse(text).message ?? sentence;
  } catch {
    // It is plain text.
  }

  const after = answer.headers.get('retry-after');
  const pause = answer.status === 429 && after !== null ? ` Try again in ${after} s.` : '';
  return (sentence === '' ? `The node answers ${answer.status}.` : sentence.slice(0, 500)) + pause;
}

export function base64(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }

  return btoa(text);
}

export function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
