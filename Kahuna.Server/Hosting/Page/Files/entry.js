// One key: its value, what is left of its time to live, its history, and the change or deletion of it.

import { base64, CallError, get, put, remove } from './api.js';
import { byId, make, runDown, setText, visible } from './dom.js';
import { mayWrite } from './rights.js';
import { isEditable, preview, read, whole } from './values.js';

/** Revisions before the present one that are asked for. */
const historyMax = 10;

export class Entry {
  /**
   * @param {(text: string, isBad: boolean) => void} say Tells the user something.
   * @param {() => void} refresh Shows the view again.
   */
  constructor(say, refresh) {
    this.say = say;
    this.refreshView = refresh;
    this.close();
    byId('entry-close').addEventListener('click', () => {
      const opener = this.opener;
      this.close();
      opener?.focus();
    });
    byId('entry-save').addEventListener('click', () => this.act(() => this.save()));
    byId('entry-delete').addEventListener('click', () => {
      byId('entry-sure').hidden = false;
      byId('entry-sure').focus();
    });
    byId('entry-sure').addEventListener('click', () => this.act(() => this.delete()));
  }

  close() {
    this.opened = (this.opened ?? 0) + 1;
    this.key = null;
    this.opener = null;
    byId('entry').hidden = true;
  }

  /** Shows a key. */
  async open(key, durability, opener) {
    this.close();
    Object.assign(this, { key, durability, opener, shown: null });
    setText(byId('entry-title'), visible(key));
    setText(byId('entry-value'), '');
    byId('entry-facts').replaceChildren();
    byId('entry-history').replaceChildren();
    byId('entry-edit').hidden = true;
    byId('entry-sure').hidden = true;
    byId('entry').hidden = false;
    byId('entry-title').focus();
    await this.act(() => this.refresh());
  }

  async refresh() {
    if (this.key === null) {
      return;
    }

    const asked = this.opened;
    const found = await get('/v1/kv', { key: this.key, durability: this.durability });
    if (asked !== this.opened) {
      return;
    }

    this.showFacts(found);
    if (this.shown !== found.revision) {
      const isFirst = this.shown === null;
      this.shown = found.revision;
      setText(byId('entry-value'), found.found ? whole(found.value) : '');
      if (isFirst) {
        this.beginEdit(found);
      }

      await this.showHistory(found, asked);
    }
  }

  showFacts(found) {
    const left = make('dd');
    if (found.remainingTtlMs !== undefined) {
      runDown(left, found.remainingTtlMs);
    } else {
      left.textContent = 'never';
    }

    const bytes = read(found.value).bytes?.length ?? 0;
    byId('entry-facts').replaceChildren(...(found.found
      ? [
        make('dt', 'Revision'), make('dd', found.revision),
        make('dt', 'Expires in'), left,
        make('dt', 'Size'), make('dd', `${bytes} bytes`),
      ]
      : [make('dt', 'State'), make('dd', 'This key does not exist now.', 'bad')]));
  }

  /** What is edited is what was there when the key was opened; a refresh leaves the text alone. */
  beginEdit(found) {
    this.edited = found;
    byId('entry-edit').hidden = !found.found || !mayWrite(this.key, this.durability);
    byId('entry-text').value = found.found && isEditable(found.value) ? read(found.value).text ?? '' : '';
    byId('entry-text').disabled = byId('entry-save').disabled = found.found && !isEditable(found.value);
    byId('entry-sure').hidden = true;
  }

  async showHistory(found, asked) {
    const items = [];
    const newest = BigInt(found.revision ?? 0);
    for (let back = 1n; back <= historyMax && newest - back >= 1n; back++) {
      const revision = String(newest - back);
      try {
        const old = await get('/v1/kv', { key: this.key, durability: this.durability, atRevision: revision });
        items.push(make('li', `Revision ${revision}: ${old.found ? preview(old.value) : '(deleted)'}`, 'code'));
      } catch (error) {
        if (!(error instanceof CallError) || error.status === 0 || error.status === 401) {
          throw error;
        }

        items.push(make('li', `Revision ${revision} and older: not kept.`, 'quiet'));
        break;
      }

      if (asked !== this.opened) {
        return;
      }
    }

    byId('entry-history').replaceChildren(
      ...(items.length === 0 ? [make('li', 'No older revisions.', 'quiet')] : items));
  }

  async save() {
    const answer = await put('/v1/kv', {
      key: this.key,
      durability: this.durability,
      value: { data: base64(new TextEncoder().encode(byId('entry-text').value)) },
      conditions: { ifRevision: this.edited.revision },
      ttlMs: await this.timeLeft(),
    });
    if (!answer.set) {
      this.say('The key has changed since you opened it, so nothing was saved. Open it again.', true);
      return;
    }

    this.say(`Saved as revision ${answer.revision}.`, false);
    this.shown = null;
    await this.refresh();
  }

  /** A change leaves the time to live as it is. */
  async timeLeft() {
    const found = await get('/v1/kv', { key: this.key, durability: this.durability });
    return found.remainingTtlMs === undefined ? undefined : String(Math.max(1, Number(found.remainingTtlMs)));
  }

  async delete() {
    const answer = await remove('/v1/kv', {
      'key': this.key, 'durability': this.durability, 'conditions.ifRevision': this.edited.revision,
    });
    if (!answer.deleted) {
      this.say('The key has changed since you opened it, so nothing was deleted. Open it again.', true);
      return;
    }

    this.say('Deleted.', false);
    this.close();
    byId('keys-title').focus();
    this.refreshView();
  }

  /** Does something that the user asked for, and says why it fails. */
  async act(action) {
    try {
      await action();
    } catch (error) {
      if (!(error instanceof CallError)) {
        throw error;
      }

      this.say(error.message, true);
    }
  }
}
