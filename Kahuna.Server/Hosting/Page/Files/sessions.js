// The sessions of clients, in each partition that has one: by them a command that comes twice takes effect once.

import { cell, runDown, size, span } from './dom.js';
import { List } from './list.js';

function fill(row, session) {
  cell(row, 0, session.id, 'code');
  cell(row, 1, session.isIdempotencyKey ? 'idempotency key' : 'client');
  cell(row, 2, String(session.partition), 'number');
  cell(row, 3, session.durability);
  cell(row, 4, session.idleMs < 1000 ? 'now' : `${span(session.idleMs)} ago`, 'number');
  runDown(cell(row, 5, undefined, 'number'), session.leftMs);
  cell(row, 6, String(session.calls), 'number');
  cell(row, 7, size(session.bytes), 'number');
}

export function createSessions(refresh) {
  return new List({
    name: 'sessions',
    path: '/ui/sessions',
    items: 'sessions',
    columns: 8,
    rows: (sessions) => sessions,
    keyOf: (session) => `${session.durability} ${session.partition} ${session.id}`,
    fill,
    refresh,
  });
}
