// A day of usage in usage.db, as the server writes it, so that charts have something to show.
import { DatabaseSync } from 'node:sqlite';
import { trial } from './stage.mjs';

const MINUTE_S = 60;
const QUARTER_S = 900;

// The metrics that are filled, by their number in the file.
const CPU = 0, MEMORY = 2, MEMORY_LIMIT = 3, RECEIVED = 6, SENT = 7;

// Three digits: six bits of exponent, ten of mantissa.
function encode(value) {
  let [mantissa, exponent] = [Math.round(value), 0];
  for (; mantissa >= 2048; exponent += 1) mantissa = Math.floor(mantissa / 2);
  return mantissa < 1024 ? mantissa : ((exponent + 1) << 10) | (mantissa - 1024);
}

function entry(series, at, factor, isSummary) {
  const day = (1 + Math.sin((at / 86_400) * 4 * Math.PI)) / 2;
  const values = [
    [CPU, 100 * (5 + 40 * day * factor)], [MEMORY, 1e9 * (1 + day) * factor], [MEMORY_LIMIT, 4e9],
    [RECEIVED, 1e6 * day * factor], [SENT, 2e5 * day * factor],
  ];
  const bytes = Buffer.alloc(7 + values.length * (isSummary ? 4 : 2));
  bytes.writeUInt32LE(series, 0);
  bytes.writeUInt8(isSummary ? 15 : 1, 4);
  bytes.writeUInt16LE(values.reduce((mask, [bit]) => mask | (1 << bit), 0), 5);
  const twice = isSummary ? [...values, ...values] : values;
  twice.forEach(([, value], index) => bytes.writeUInt16LE(encode(value), 7 + 2 * index));
  return bytes;
}

// The host, and these containers; the server has opened the file before.
export function fillHistory(days, ...containers) {
  const file = new DatabaseSync(trial.state_db.replace(/state\.db$/, 'usage.db'));
  file.exec('PRAGMA busy_timeout = 5000');
  const now = Math.floor(Date.now() / 1000);
  const series = ['', ...containers].map((name) => file.prepare(
    'INSERT INTO series (name, seen_s) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET seen_s = excluded.seen_s RETURNING id',
  ).get(name, now).id);
  const fill = (table, step, length, isSummary) => {
    const insert = file.prepare(`INSERT OR REPLACE INTO ${table} VALUES (?, ?)`);
    for (let at = now - (now % step) - step; at > now - length; at -= step) {
      insert.run(at, Buffer.concat(series.map((id, index) => entry(id, at, index === 0 ? 1 : 0.3, isSummary))));
    }
  };
  file.exec('BEGIN');
  fill('minutes', MINUTE_S, 86_400, false);
  fill('quarters', QUARTER_S, days * 86_400, true);
  file.exec('COMMIT');
  file.close();
}
