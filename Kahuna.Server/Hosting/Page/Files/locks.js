// The locks that are held, with leases that run down.

import { bytesOf } from './api.js';
import { cell, make, runDown, setText, stopRunning, visible } from './dom.js';
import { List } from './list.js';
import { Queue } from './queue.js';

const modes = { LOCK_MODE_EXCLUSIVE: 'exclusive', LOCK_MODE_SHARED: 'shared' };

/** A row for each holder: of one lock there may be many, as with readers and semaphores. */
function rowsOf(locks) {
  return locks.flatMap((lock) => (lock.holders?.length > 0 ? lock.holders : [null]).map(
    (holder) => ({ lock, holder })));
}

function fillHolder(row, { lock, holder }) {
  cell(row, 0, visible(lock.resource), 'name code');
  cell(row, 1, holder === null ? '' : ownerOf(holder), 'name');
  cell(row, 2, holder === null ? '' : lock.permits > 0 ? `semaphore of ${lock.permits}`
    : modes[holder.mode] ?? holder.mode);
  cell(row, 3, holder?.token ?? '', 'number');
  const lease = cell(row, 4, undefined, 'number');
  if (holder === null) {
    stopRunning(lease, '');
  } else {
    runDown(lease, holder.remainingLeaseMs);
  }

  cell(row, 5, String(lock.holderCount), 'number');
}

function ownerOf(holder) {
  const owner = holder.owner === '' ? '(unknown since the partition lost its data)' : visible(holder.owner);
  const note = holder.note ? visible(new TextDecoder().decode(bytesOf(holder.note))) : '';
  return note === '' ? owner : `${owner}, note: ${note.slice(0, 200)}`;
}

export function createLocks(refresh) {
  const queue = new Queue();
  const list = new List({
    name: 'locks',
    path: '/v1/locks',
    items: 'locks',
    columns: 7,
    rows: rowsOf,
    keyOf: ({ lock, holder }) => `${holder?.token ?? ''} ${lock.resource}`,
    fill,
    refresh,
  });

  function fill(row, item) {
    fillHolder(row, item);
    const waiting = cell(row, 6, undefined, 'number');
    let opener = waiting.firstElementChild;
    if (opener === null) {
      opener = make('button', '', 'plain');
      opener.type = 'button';
      opener.addEventListener('click', () => {
        queue.open(item.lock.resource, list.durability, opener);
        refresh();
      });
      waiting.append(opener);
    }

    setText(opener, String(item.lock.waiting));
    opener.setAttribute('aria-label', `${item.lock.waiting} wait for ${visible(item.lock.resource)}: show the queue`);
  }

  return {
    async refresh() {
      await list.refresh();
      await queue.refresh();
    },
    clear() {
      queue.close();
    },
  };
}
