// One chart: lines over the last hour with axes, a legend, a readout for pointer and keyboard, and a table.

import { cell, make, setText } from './dom.js';

const hourMs = 3600000;
const height = 200;
const margin = { left: 76, right: 10, top: 8, bottom: 30 };
const ticksAt = [60, 45, 30, 15, 0];
const narrow = 420;

/** Of a table, one sample a minute is shown. */
const rowEvery = 6;

export class Chart {
  /**
   * @param {object} settings `title`; `lines`: the names of the lines; `text`: writes a value with its unit;
   * `axis`: 'logarithmic' goes by powers of ten, 'bytes' by powers of two.
   */
  constructor(settings) {
    this.settings = settings;
    this.samples = [];
    this.at = -1;
    this.figure = document.getElementById('chart-template').content.firstElementChild.cloneNode(true);
    this.svg = this.figure.querySelector('svg');
    this.svg.setAttribute('aria-label', `${settings.title}, the last hour. The arrow keys go from moment to moment.`);
    this.figure.querySelector('figcaption').textContent = settings.title;
    this.readout = this.figure.querySelector('.readout');
    this.table = this.figure.querySelector('table');
    this.details = this.figure.querySelector('details');
    this.details.addEventListener('toggle', () => this.showTable());
    this.addLegend();
    this.listen();
  }

  addLegend() {
    const legend = this.figure.querySelector('ul');
    const head = this.table.tHead.rows[0];
    this.settings.lines.forEach((name, index) => {
      const item = make('li');
      const mark = this.figure.querySelector('.mark').cloneNode(true);
      mark.removeAttribute('hidden');
      mark.firstElementChild.setAttribute('class', `line line-${index}`);
      item.append(mark, make('span', name));
      legend.append(item);
      const heading = make('th', name, 'number');
      heading.scope = 'col';
      head.append(heading);
    });
  }

  listen() {
    this.svg.addEventListener('pointermove', (event) => {
      const box = this.svg.getBoundingClientRect();
      this.point(this.nearest(event.clientX - box.left));
    });
    this.svg.addEventListener('pointerleave', () => this.point(-1));
    this.svg.addEventListener('blur', () => this.point(-1));
    this.svg.addEventListener('keydown', (event) => {
      const last = this.samples.length - 1;
      const from = this.at < 0 ? last + 1 : this.at;
      const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key];
      if (to !== undefined) {
        event.preventDefault();
        this.point(Math.min(last, Math.max(0, to)));
      }
    });
  }

  /**
   * Shows samples, the oldest first: each has its `ageMs`, and `values` with a number or null for each line.
   * `startMs`: the age of the node's start.
   */
  show(samples, startMs, periodMs) {
    const pointed = this.at < 0 ? null : this.samples[this.at]?.takenAt;
    Object.assign(this, { samples, startMs, periodMs });
    this.draw();
    this.point(pointed === null ? -1 : samples.findIndex((sample) => Math.abs(sample.takenAt - pointed) < 1000));
    this.showTable();
  }

  /** Draws everything anew, as wide as there is room. */
  draw() {
    const width = Math.max(240, this.svg.clientWidth);
    this.svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.width = width;
    this.scale = scaleFor(this.samples.flatMap((sample) => sample.values), this.settings);
    const parts = [];
    for (const value of this.scale.ticks) {
      const y = this.y(value);
      parts.push(
        this.part('line', { class: 'grid', x1: margin.left, x2: width - margin.right, y1: y, y2: y }),
        this.part('text', { x: margin.left - 6, y: y + 4, 'text-anchor': 'end' }, this.settings.text(value)));
    }

    for (const minutes of width < narrow ? [60, 30, 0] : ticksAt) {
      parts.push(this.part(
        'text',
        { x: this.x(minutes * 60000), y: height - 6, 'text-anchor': minutes === 0 ? 'end' : 'middle' },
        minutes === 0 ? 'now' : `${minutes} min`));
    }

    if (this.startMs < hourMs) {
      const x = this.x(this.startMs);
      parts.push(
        this.part('line', { class: 'start', x1: x, x2: x, y1: margin.top, y2: height - margin.bottom }),
        this.part('text', { x: x + 4, y: margin.top + 10 }, 'start'));
    }

    this.settings.lines.forEach((_, index) => parts.push(
      this.part('path', { class: `line line-${index}`, d: this.path(index) })));
    this.cursor = this.part(
      'line', { class: 'cursor', y1: margin.top, y2: height - margin.bottom, visibility: 'hidden' });
    this.svg.replaceChildren(...parts, this.cursor);
  }

  /** A line, interrupted where samples or values are missing. */
  path(index) {
    const steps = [];
    let before = null;
    for (const { ageMs, values } of this.samples) {
      const value = values[index];
      if (value === null) {
        before = null;
        continue;
      }

      const isNext = before !== null && before - ageMs <= 1.5 * this.periodMs;
      const [x, y] = [this.x(ageMs).toFixed(1), this.y(value).toFixed(1)];
      // A line of length zero has round ends, so that a value between gaps is seen.
      steps.push(isNext ? `L${x} ${y}` : `M${x} ${y}h0`);
      before = ageMs;
    }

    return steps.join('');
  }

  part(name, attributes, text = '') {
    const made = document.createElementNS(this.svg.namespaceURI, name);
    for (const [attribute, value] of Object.entries(attributes)) {
      made.setAttribute(attribute, value);
    }

    made.textContent = text;
    return made;
  }

  x(ageMs) {
    return margin.left + (this.width - margin.left - margin.right) * (1 - Math.min(ageMs, hourMs) / hourMs);
  }

  y(value) {
    return height - margin.bottom - (height - margin.bottom - margin.top) * this.scale.share(value);
  }

  nearest(x) {
    let best = -1;
    this.samples.forEach((sample, index) => {
      if (best < 0 || Math.abs(this.x(sample.ageMs) - x) < Math.abs(this.x(this.samples[best].ageMs) - x)) {
        best = index;
      }
    });
    return best;
  }

  /** Points at a sample; -1: at none. */
  point(index) {
    this.at = index;
    const sample = this.samples[index];
    if (sample === undefined) {
      this.cursor?.setAttribute('visibility', 'hidden');
      setText(this.readout, '');
      return;
    }

    this.cursor.setAttribute('visibility', 'visible');
    this.cursor.setAttribute('x1', this.x(sample.ageMs));
    this.cursor.setAttribute('x2', this.x(sample.ageMs));
    setText(this.readout, `${whenOf(sample)}: ` + this.settings.lines.map(
      (name, at) => `${name} ${this.textOf(sample.values[at])}`).join(', '));
  }

  textOf(value) {
    return value === null ? 'none' : this.settings.text(value);
  }

  /** The table is made only where it is open. */
  showTable() {
    const body = this.table.tBodies[0];
    if (!this.details.open) {
      body.replaceChildren();
      return;
    }

    body.replaceChildren(...this.samples.filter((_, index) => (this.samples.length - 1 - index) % rowEvery === 0)
      .reverse().map((sample) => {
        const row = document.createElement('tr');
        cell(row, 0, whenOf(sample));
        sample.values.forEach((value, at) => cell(row, at + 1, this.textOf(value), 'number'));
        return row;
      }));
  }
}

function whenOf(sample) {
  const time = new Date(sample.takenAt).toLocaleTimeString();
  return sample.ageMs < 60000 ? `${time}, now` : `${time}, ${Math.round(sample.ageMs / 60000)} min ago`;
}

function scaleFor(values, { axis }) {
  const known = values.filter((value) => value !== null && value > 0);
  const highest = known.length === 0 ? 1 : Math.max(...known);
  return axis === 'logarithmic' ? powersOfTen(known, highest)
    : steps(highest, axis === 'bytes' ? powerOfTwo(highest / 4) : roundStep(highest / 4));
}

function powersOfTen(known, highest) {
  const top = Math.ceil(Math.log10(highest));
  const bottom = Math.min(top - 1, known.length === 0 ? top - 1 : Math.floor(Math.log10(Math.min(...known))));
  return {
    ticks: Array.from({ length: top - bottom + 1 }, (_, index) => 10 ** (bottom + index)),
    share: (value) => Math.max(0, (Math.log10(Math.max(value, 10 ** bottom)) - bottom) / (top - bottom)),
  };
}

function powerOfTwo(rough) {
  return 2 ** Math.ceil(Math.log2(rough));
}

/** One, two or five times a power of ten. */
function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].find((times) => times * power >= rough) * power;
}

/** Steps from zero to the highest value. */
function steps(highest, step) {
  const count = Math.ceil(highest / step);
  return {
    ticks: Array.from({ length: count + 1 }, (_, index) => index * step),
    share: (value) => value / (count * step),
  };
}
