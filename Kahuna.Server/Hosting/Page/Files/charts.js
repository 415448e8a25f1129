// The charts of the last hour of one node, from the samples that each node keeps.

import { get } from './api.js';
import { Chart } from './chart.js';
import { byId, make, setText, size, visible } from './dom.js';

const groups = {
  persistentWrites: 'persistent writes',
  ephemeralWrites: 'ephemeral writes',
  reads: 'reads',
  locks: 'locks',
};
const timed = { ...groups, logSyncs: 'log syncs' };
const memory = { processBytes: 'process', persistentBytes: 'persistent data', ephemeralBytes: 'ephemeral data' };

/** A node takes a sample every ten seconds, so asking more often shows nothing new. */
const againMs = 10000;

export function createCharts() {
  const charts = [
    {
      chart: new Chart({
        title: 'Operations per second', lines: [...Object.values(groups), 'refused or unknown'], text: rate,
      }),
      valuesOf: (history, at) => [
        ...Object.keys(groups).map((name) => perSecond(history, history.groups[name].count, at)),
        perSecond(history, history.refused, at),
      ],
    },
    durations('Median time', 'p50Us'),
    durations('99th percentile of the time', 'p99Us'),
    gauges('Memory', memory, size, 'bytes'),
    gauges('Log', { logBytes: 'log' }, size, 'bytes'),
    gauges('Connections', { connections: 'connections' }, rate),
  ];
  let latest = null;
  let askedAt = -Infinity;
  byId('charts-list').replaceChildren(...charts.map(({ chart }) => chart.figure));
  byId('charts-node').addEventListener('change', show);
  new ResizeObserver(() => charts.forEach(({ chart }) => chart.samples.length > 0 && chart.draw()))
    .observe(byId('charts-list'));

  function show() {
    if (latest === null) {
      return;
    }

    offerNodes(latest);
    const chosen = Number(byId('charts-node').value);
    const { problem, status } = latest.nodes.find(({ nodeId }) => nodeId === chosen) ?? latest.nodes[0];
    setText(byId('charts-note'), status === undefined
      ? `Node ${chosen} does not answer: ${visible(problem ?? '')}`
      : !status.metrics ? `Metrics are off on node ${chosen} (--metrics off), so it keeps no history.`
      : status.agesMs.length === 0 ? `Node ${chosen} has just started; its first sample comes within ten seconds.`
      : 'One sample each ten seconds. A line is interrupted where nothing was measured.');
    byId('charts-list').hidden = !status?.metrics;
    if (status?.metrics) {
      const samplesOf = (valuesOf) => status.agesMs.map((ageMs, at) => (
        { ageMs, takenAt: latest.at - ageMs, values: valuesOf(status, at) }));
      for (const { chart, valuesOf } of charts) {
        chart.show(samplesOf(valuesOf), status.runningMs, status.periodMs);
      }
    }
  }

  return {
    async refresh() {
      if (performance.now() - askedAt >= againMs) {
        const answer = await get('/ui/history');
        askedAt = performance.now();
        latest = { ...answer, at: Date.now() };
        show();
      }
    },
    clear() {
      latest = null;
      askedAt = -Infinity;
      byId('charts-node').replaceChildren();
      setText(byId('charts-note'), '');
      byId('charts-list').hidden = true;
      charts.forEach(({ chart }) => chart.show([], Infinity, againMs));
    },
  };
}

function durations(title, field) {
  return {
    chart: new Chart({ title, lines: Object.values(timed), text: time, axis: 'logarithmic' }),
    valuesOf: (history, at) => Object.keys(timed).map((name) => {
      const us = history.groups[name][field][at];
      return us < 0 ? null : us;
    }),
  };
}

function gauges(title, names, text, axis) {
  return {
    chart: new Chart({ title, lines: Object.values(names), text, axis }),
    valuesOf: (history, at) => Object.keys(names).map((name) => history.gauges[name][at]),
  };
}

function perSecond(history, counts, at) {
  return counts[at] * 1000 / history.coversMs[at];
}

function offerNodes({ self, nodes }) {
  const select = byId('charts-node');
  const ids = nodes.map(({ nodeId }) => String(nodeId));
  if ([...select.options].map((option) => option.value).join() !== ids.join()) {
    select.replaceChildren(...ids.map((id) => {
      const option = make('option', `node ${id}`);
      option.value = id;
      return option;
    }));
    select.value = String(self);
  }
}

export function rate(value) {
  return value >= 1e6 ? `${shortest(value / 1e6)} M` : value >= 1e3 ? `${shortest(value / 1e3)} k` : shortest(value);
}

/** Microseconds in the unit that reads best. */
export function time(us) {
  return us >= 1e6 ? `${shortest(us / 1e6)} s` : us >= 1e3 ? `${shortest(us / 1e3)} ms` : `${shortest(us)} µs`;
}

function shortest(value) {
  return String(Number(value.toPrecision(3)));
}
