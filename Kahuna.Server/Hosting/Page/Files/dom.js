// Elements and texts. Everything that comes from a node becomes text, never markup.

export const byId = (id) => document.getElementById(id);

/** An element with a text, and a class if one is given. */
export function make(name, text = '', kind = '') {
  const element = document.createElement(name);
  element.textContent = text;
  if (kind !== '') {
    element.className = kind;
  }

  return element;
}

/** Sets a text only where it differs, so that a selection in it stays. */
export function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

// Controls, marks that turn the direction of writing or have no width, line separators, and halves of pairs.
const unseen = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** The text with each character that is not seen written as its number. */
export function visible(text) {
  return text.toWellFormed().replace(unseen, (letter) =>
    `\\u{${letter.codePointAt(0).toString(16).padStart(2, '0')}}`);
}

/** Like `visible`, with the lines of the text kept. */
export function visibleLines(text) {
  return text.split('\n').map(visible).join('\n');
}

/**
 * Makes the rows of a table those of the items. A row whose item was there before stays the same element, so that it
 * keeps the focus. `keyOf` names an item, `fill` makes or changes the cells of its row.
 */
export function syncRows(body, items, keyOf, fill) {
  const wanted = new Set(items.map(keyOf));
  const before = new Map();
  for (const row of [...body.children]) {
    if (wanted.has(row.kahunaKey)) {
      before.set(row.kahunaKey, row);
    } else {
      row.remove();
    }
  }

  let next = body.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let row = before.get(key);
    if (row === undefined) {
      row = document.createElement('tr');
      row.kahunaKey = key;
    }

    fill(row, item);
    if (row === next) {
      next = next.nextElementSibling;
    } else {
      body.insertBefore(row, next);
    }
  }
}

/** The cell of a row at a place, made when it is missing. The first cell of a row is its heading. */
export function cell(row, at, text, kind = '') {
  while (row.cells.length <= at) {
    const made = document.createElement(row.cells.length === 0 ? 'th' : 'td');
    if (row.cells.length === 0) {
      made.scope = 'row';
    }

    row.append(made);
  }

  const found = row.cells[at];
  if (text !== undefined) {
    setText(found, text);
  }

  found.className = kind;
  return found;
}

/** Leaves one row, which says that there is nothing. */
export function emptyRow(body, columns, text) {
  const row = document.createElement('tr');
  const only = make('td', text, 'quiet');
  only.colSpan = columns;
  row.append(only);
  body.replaceChildren(row);
}

export function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = Number(bytes);
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }

  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

export function span(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const parts = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  return parts[0] > 0 ? `${parts[0]} d ${parts[1]} h`
    : parts[1] > 0 ? `${parts[1]} h ${parts[2]} min`
    : parts[2] > 0 ? `${parts[2]} min ${seconds % 60} s`
    : `${seconds} s`;
}

/** A moment with its date: a page may be open for days. */
export function moment(date) {
  return date.toLocaleString();
}

/** Has an element show a time that runs down. */
export function runDown(element, ms) {
  element.dataset.until = String(performance.now() + Number(ms));
  setText(element, span(Number(ms)));
}

export function stopRunning(element, text) {
  delete element.dataset.until;
  setText(element, text);
}

/** Shows what is left of each time that runs down. */
export function tick() {
  for (const element of document.querySelectorAll('[data-until]')) {
    setText(element, span(Number(element.dataset.until) - performance.now()));
  }
}
