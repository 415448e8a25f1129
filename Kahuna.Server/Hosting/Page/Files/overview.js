// The nodes, the partitions, and what to do.

import { adviceFor, groupsOf } from './advice.js';
import { get } from './api.js';
import { byId, cell, make, size, syncRows, visible } from './dom.js';

const secondsPerDay = 86400;

/** The version of the node when the page was opened, which is that of the page. */
let ownVersion;

export async function refreshOverview() {
  const cluster = await get('/ui/status');
  showAdvice([...adviceForPage(cluster), ...adviceFor(cluster)]);
  syncRows(byId('nodes'), cluster.nodes, (node) => node.nodeId, (row, node) => fillNode(row, node, cluster.self));
  syncRows(byId('partitions'), groupsOf(cluster), (group) => group.name, fillGroup);
}

/** A page that is open while its node is upgraded may not understand what the node tells now. */
function adviceForPage({ nodes, self }) {
  const version = nodes.find(({ nodeId }) => nodeId === self)?.status?.version;
  ownVersion ??= version;
  return version === undefined || version === ownVersion ? []
    : [`This page is of version ${ownVersion}, and its node now runs ${version}. Reload the page.`];
}

function showAdvice(sentences) {
  const list = byId('advice');
  const shown = sentences.length === 0
    ? [make('li', 'Nothing to do.', 'good')]
    : sentences.map((sentence) => make('li', visible(sentence), 'bad'));
  if (list.textContent !== shown.map((item) => item.textContent).join('')) {
    list.replaceChildren(...shown);
  }
}

function fillNode(row, node, self) {
  const status = node.status;
  cell(row, 0, `${node.nodeId}${node.nodeId === self ? ' (asked)' : ''}`);
  cell(row, 1, node.address, 'address');
  if (status === undefined) {
    cell(row, 2, 'not answering', 'bad state');
    for (let at = 3; at < 10; at++) {
      cell(row, at, '');
    }

    return;
  }

  cell(row, 2, status.ready ? 'ready' : 'not ready', status.ready ? 'good' : 'bad state');
  cell(row, 3, status.version);
  cell(row, 4, size(status.persistentBytes), 'number');
  cell(row, 5, size(status.ephemeralBytes), 'number');
  cell(row, 6, size(status.gc.workingSetBytes), 'number');
  cell(row, 7, size(status.storage.logBytes), 'number');
  cell(row, 8, String(status.connections.counted), 'number');
  cell(row, 9, `${Math.floor(status.certificate.secondsLeft / secondsPerDay)} d`, 'number');
}

function fillGroup(row, group) {
  cell(row, 0, String(group.partition));
  cell(row, 1, group.durability);
  cell(row, 2, group.leader === 0 ? 'none' : `node ${group.leader}`, group.leader === 0 ? 'bad' : '');
  cell(row, 3, String(group.term), 'number');
  cell(row, 4, String(group.commit), 'number');
  cell(row, 5, group.behind.map(({ nodeId, entries }) => `${nodeId}: ${entries}`).join(', '));
  cell(row, 6, String(group.leading.keys), 'number');
  cell(row, 7, String(group.leading.locks.held), 'number');
  cell(row, 8, String(group.leading.locks.waiting), 'number');
  cell(row, 9, String(group.leading.sessions.count), 'number');
}
