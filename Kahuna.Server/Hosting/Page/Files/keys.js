// The keys that begin with a prefix, and one of them in full.

import { cell, make, setText, visible } from './dom.js';
import { Entry } from './entry.js';
import { List } from './list.js';
import { preview } from './values.js';

const perPage = 100;

export function createKeys(say, refresh) {
  const entry = new Entry(say, refresh);
  const list = new List({
    name: 'keys',
    path: '/v1/scan',
    items: 'entries',
    fields: { limit: perPage },
    columns: 3,
    rows: (entries) => entries,
    keyOf: (item) => item.key,
    fill,
    refresh,
  });

  function fill(row, item) {
    const name = cell(row, 0, undefined, 'name');
    let opener = name.firstElementChild;
    if (opener === null) {
      opener = make('button', '', 'plain code');
      opener.type = 'button';
      opener.addEventListener('click', () => entry.open(item.key, list.durability, opener));
      name.append(opener);
    }

    setText(opener, item.key === '' ? '(the empty key)' : visible(item.key));
    cell(row, 1, item.revision, 'number');
    cell(row, 2, preview(item.value), 'name code');
  }

  return {
    async refresh() {
      await list.refresh();
      await entry.refresh();
    },
    clear() {
      entry.close();
    },
  };
}
