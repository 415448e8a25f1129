// Values as people read them: text where they are text, else bytes in hexadecimal.

import { bytesOf } from './api.js';
import { visible, visibleLines } from './dom.js';

/** Most characters of a text, and most bytes in hexadecimal, that are shown. */
const textMax = 65536;
const bytesMax = 4096;
const previewMax = 80;

/** What a value is: its bytes (null: the null value), and its text if it is one. */
export function read(value) {
  if (value === undefined || value === null || value.data === undefined) {
    return { bytes: null, text: null };
  }

  const bytes = bytesOf(value.data);
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { bytes, text: /[\u0000-\u0008\u000e-\u001f]/.test(text) ? null : text };
  } catch {
    return { bytes, text: null };
  }
}

/** Whether a value can be edited as text without losing anything. */
export function isEditable(value) {
  const { bytes, text } = read(value);
  return bytes === null || (text !== null && text.length <= textMax && !text.includes('\r'));
}

/** One line about a value. */
export function preview(value) {
  const { bytes, text } = read(value);
  return bytes === null ? '(null)'
    : bytes.length === 0 ? '(empty)'
    : text === null ? `${hex(bytes.subarray(0, 16))}${bytes.length > 16 ? ' …' : ''} (${bytes.length} bytes)`
    : text.length > previewMax ? `${visible(text.slice(0, previewMax))}…`
    : visible(text);
}

/** A whole value, as far as it is shown. */
export function whole(value) {
  const { bytes, text } = read(value);
  if (bytes === null) {
    return '(null)';
  }

  if (text !== null) {
    return text.length > textMax
      ? `${visibleLines(text.slice(0, textMax))}\n… ${text.length - textMax} more characters`
      : visibleLines(text);
  }

  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, bytesMax); at += 16) {
    const line = bytes.subarray(at, at + 16);
    const letters = String.fromCharCode(...line).replace(/[^\u0020-\u007e]/g, '.');
    lines.push(`${at.toString(16).padStart(8, '0')}  ${hex(line).padEnd(47)}  ${letters}`);
  }

  return lines.join('\n') + (bytes.length > bytesMax ? `\n… ${bytes.length - bytesMax} more bytes` : '');
}

export function hex(bytes) {
  return [...bytes].map((part) => part.toString(16).padStart(2, '0')).join(' ');
}
