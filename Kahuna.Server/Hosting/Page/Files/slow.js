// The slow operations of all nodes, the newest first, with the stages that took the time.

import { bytesOf, CallError, get } from './api.js';
import { time } from './charts.js';
import { byId, cell, emptyRow, make, moment, setText, syncRows, visible } from './dom.js';
import { hex } from './values.js';

/** Operations that are shown at a time. */
const rowsMax = 200;
const columns = 8;
const barWidth = 160;
const barHeight = 12;
const stageClasses = 5;

export async function refreshSlow() {
  const rows = byId('slow-rows');
  let cluster;
  try {
    cluster = await get('/ui/slow');
  } catch (error) {
    if (error instanceof CallError && error.status === 404) {
      setText(byId('slow-note'), '');
      emptyRow(rows, columns, 'Metrics are off on this node (--metrics off), so it keeps no slow operations.');
      return;
    }

    throw error;
  }

  const answering = cluster.nodes.filter(({ status }) => status !== undefined);
  const all = answering.flatMap(({ nodeId, status }) => status.operations.map((told) => ({ ...told, nodeId })));
  all.sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
  setText(byId('slow-note'), [
    ...answering.map(({ nodeId, status }) => (status.thresholdMs === null
      ? `Node ${nodeId}: the slow log is off.`
      : `Node ${nodeId}: ${status.recorded} since its start took ${status.thresholdMs} ms or longer.`)),
    ...cluster.nodes.filter(({ status }) => status === undefined).map(({ nodeId, problem }) =>
      `Node ${nodeId} does not answer: ${visible(problem ?? '')}`),
  ].join(' '));
  if (all.length === 0) {
    emptyRow(rows, columns, 'No operation was slow.');
  } else {
    syncRows(rows, all.slice(0, rowsMax), (told) => `${told.nodeId} ${told.at} ${told.id}`, fill);
  }
}

function fill(row, told) {
  if (row.cells.length > 0) {
    // What was slow does not change.
    return;
  }

  const at = new Date(told.at);
  cell(row, 0, Number.isNaN(at.getTime()) ? visible(String(told.at)) : moment(at), 'moment');
  cell(row, 1, String(told.nodeId), 'number');
  cell(row, 2, visible(`${told.operation}${told.durability ? `, ${told.durability}` : ''}`));
  cell(row, 3, keyOf(told), 'name code');
  cell(row, 4, String(told.partition ?? ''), 'number');
  cell(row, 5, visible(String(told.status)));
  cell(row, 6, time(told.totalUs), 'number');
  showStages(cell(row, 7, ''), told);
}

function keyOf({ key, keyIsText }) {
  return keyIsText ? visible(key ?? '') : hex(bytesOf(key ?? ''));
}

/** A bar of the stages, as long as their times, and the same in words. */
function showStages(target, { events, totalUs }) {
  const bar = byId('stages-template').content.firstElementChild.cloneNode(true);
  const words = [];
  let before = 0;
  events.forEach(({ name, us }, index) => {
    if (index > 0) {
      const part = document.createElementNS(bar.namespaceURI, 'rect');
      part.setAttribute('class', `stage-${(index - 1) % stageClasses}`);
      part.setAttribute('x', barWidth * share(before, totalUs));
      part.setAttribute('width', barWidth * Math.max(0, share(us, totalUs) - share(before, totalUs)));
      part.setAttribute('height', barHeight);
      bar.append(part);
      words.push(`${name} ${time(Math.max(0, us - before))}`.replaceAll(' ', '\u00a0'));
    }

    before = us;
  });
  target.append(bar, make('div', visible(words.join(', '))));
}

function share(us, totalUs) {
  return totalUs > 0 ? Math.min(1, Math.max(0, us / totalUs)) : 0;
}
