// The sequences, with the value that was taken last.

import { cell, visible } from './dom.js';
import { List } from './list.js';

function fill(row, sequence) {
  cell(row, 0, visible(sequence.name), 'name code');
  cell(row, 1, sequence.latest ?? 'none yet', 'number');
  cell(row, 2, sequence.initial, 'number');
  cell(row, 3, sequence.increment, 'number');
  cell(row, 4, sequence.min, 'number');
  cell(row, 5, sequence.max, 'number');
  cell(row, 6, sequence.cycle ? 'yes' : 'no');
}

export function createSequences(refresh) {
  return new List({
    name: 'sequences',
    path: '/v1/sequences',
    items: 'sequences',
    columns: 7,
    rows: (sequences) => sequences,
    keyOf: (sequence) => sequence.name,
    fill,
    refresh,
  });
}
