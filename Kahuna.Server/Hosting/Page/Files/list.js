// One page of names at a time, from a call that answers with a token for the next page.

import { get } from './api.js';
import { byId, emptyRow, setText, syncRows } from './dom.js';

/**
 * Locks and sequences are listed partition by partition, so that an answer can be short or empty before the last one:
 * calls go on until the page has this many rows, but not for ever.
 */
const rowsMin = 100;
const callsMax = 32;

export class List {
  /**
   * @param {object} settings `name`: the beginning of the ids of its elements; `path`: the call; `items`: the field
   * with the items of an answer; `fields`: more fields of the request; `rows`: rows of the table for the items;
   * `keyOf` and `fill`: as for `syncRows`; `columns`: how many the table has; `refresh`: shows the page again.
   */
  constructor(settings) {
    this.settings = settings;
    this.body = byId(`${settings.name}-rows`);
    this.query = 0;
    this.begin();
    byId(`${settings.name}-form`).addEventListener('submit', (event) => {
      event.preventDefault();
      this.begin();
      settings.refresh();
    });
    byId(`${settings.name}-first`).addEventListener('click', () => {
      this.begin();
      settings.refresh();
    });
    byId(`${settings.name}-next`).addEventListener('click', () => {
      if (this.next !== '') {
        this.query++;
        this.token = this.next;
        this.next = '';
        this.page++;
        settings.refresh();
      }
    });
  }

  /** Begins at the first page, with what the form says now. */
  begin() {
    this.query++;
    this.prefix = byId(`${this.settings.name}-prefix`).value;
    this.durability = byId(`${this.settings.name}-durability`)?.value;
    this.token = '';
    this.next = '';
    this.page = 1;
  }

  async refresh() {
    const asked = this.query;
    const { path, fields, items, rows, columns, keyOf, fill, name } = this.settings;
    const found = [];
    let next = this.token;
    for (let calls = 0; found.length < rowsMin && calls < callsMax && (calls === 0 || next !== ''); calls++) {
      const answer = await get(
        path, { prefix: this.prefix, durability: this.durability, pageToken: next, ...fields });
      if (asked !== this.query) {
        return;
      }

      next = answer.nextPageToken ?? '';
      found.push(...rows(answer[items] ?? []));
    }

    this.next = next;
    if (found.length === 0) {
      emptyRow(this.body, columns, next !== '' ? 'Nothing here; there may be more on the next page.'
        : this.page === 1 ? 'Nothing begins with this prefix.' : 'There are no more.');
    } else {
      syncRows(this.body, found, keyOf, fill);
    }

    byId(`${name}-first`).disabled = this.page === 1;
    byId(`${name}-next`).disabled = this.next === '';
    setText(byId(`${name}-page`), `Page ${this.page}, ${found.length} ${found.length === 1 ? 'row' : 'rows'}`);
  }
}
