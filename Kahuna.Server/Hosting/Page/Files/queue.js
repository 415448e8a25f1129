// The queue of one lock, in its order.

import { get } from './api.js';
import { byId, cell, emptyRow, runDown, setText, span, syncRows, visible } from './dom.js';

export class Queue {
  constructor() {
    this.close();
    byId('queue-close').addEventListener('click', () => {
      const opener = this.opener;
      this.close();
      opener?.focus();
    });
  }

  close() {
    this.opened = (this.opened ?? 0) + 1;
    this.resource = null;
    this.opener = null;
    byId('queue').hidden = true;
    byId('queue-rows').replaceChildren();
  }

  /** Shows the queue of a lock; the next refresh fills it. */
  open(resource, durability, opener) {
    this.close();
    Object.assign(this, { resource, durability, opener });
    setText(byId('queue-title'), `Queue of ${visible(resource)}`);
    setText(byId('queue-note'), '');
    byId('queue').hidden = false;
    byId('queue-title').focus();
  }

  async refresh() {
    if (this.resource === null) {
      return;
    }

    const asked = this.opened;
    const answer = await get('/ui/queue', { resource: this.resource, durability: this.durability });
    if (asked !== this.opened) {
      return;
    }

    setText(byId('queue-note'), `${answer.waiters} ${answer.waiters === 1 ? 'waits' : 'wait'}, as node ${answer.nodeId}`
      + ` has it.${answer.queue.length < answer.waiters ? ` The first ${answer.queue.length} are shown.` : ''}`);
    if (answer.queue.length === 0) {
      emptyRow(byId('queue-rows'), 7, 'Nobody waits.');
    } else {
      syncRows(byId('queue-rows'), answer.queue.map((waiter, at) => ({ ...waiter, place: at + 1 })),
        (waiter) => waiter.token, fill);
    }
  }
}

function fill(row, waiter) {
  cell(row, 0, String(waiter.place), 'number');
  cell(row, 1, visible(waiter.owner), 'name');
  cell(row, 2, waiter.mode);
  cell(row, 3, waiter.token, 'number');
  cell(row, 4, waiter.waitedMs === undefined ? '' : span(waiter.waitedMs), 'number');
  runDown(cell(row, 5, undefined, 'number'), waiter.leftMs);
  cell(row, 6, span(waiter.leaseMs), 'number');
}
