// The checks of foreign_client.mjs that are about keys, sequences and locks. Each gets the stubs and a key of its own.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";

import grpc from "@grpc/grpc-js";

const MIB = 1 << 20;
const PERSISTENT = "DURABILITY_PERSISTENT";
const EPHEMERAL = "DURABILITY_EPHEMERAL";
const bytes = (text) => ({ data: Buffer.from(text) });

/** The method of a service as a function of the fields of its request; durability is persistent unless it is given. */
function calls(stubs, service) {
  return (method, fields, options) => stubs.unary(`/kahuna.v1.${service}/${method}`, { durability: PERSISTENT, ...fields }, options);
}

/** The call ends with this code and these words, and says that nothing happened. */
async function refused(code, words, call) {
  await assert.rejects(call, (error) => {
    assert.equal(error.code, code, error.message);
    assert.ok(error.details.includes(words), error.details);
    assert.deepEqual(error.metadata.get("kahuna-outcome"), ["did-not-happen"]);
    return true;
  });
}

export async function setGetAndExists(stubs, key) {
  const call = calls(stubs, "KeyValues");
  const written = await call("SetKeyValue", { key, value: bytes("value"), ttl_ms: 600_000 });
  assert.ok(written.set && BigInt(written.revision) >= 1n);
  const found = await call("GetKeyValue", { key });
  assert.ok(found.found && found.value.data.equals(Buffer.from("value")) && found.revision === written.revision);
  const exists = await call("ExistsKeyValue", { key });
  assert.ok(exists.found && exists.revision === written.revision && exists.remaining_ttl_ms > 0 && exists.remaining_ttl_ms <= 600_000);
  assert.equal((await call("GetKeyValue", { key: `${key}-absent` })).found, false);
  assert.equal((await call("ExistsKeyValue", { key, durability: EPHEMERAL })).found, false);
  const kept = await call("SetKeyValue", { key, value: bytes("other"), conditions: { if_absent: true }, return_previous: true });
  assert.ok(!kept.set && kept.revision === written.revision && kept.previous.data.equals(Buffer.from("value")));
}

export async function nullAndEmptyValuesDiffer(stubs, key) {
  const call = calls(stubs, "KeyValues");
  await call("SetKeyValue", { key, value: bytes("") });
  assert.equal((await call("GetKeyValue", { key })).value.data.length, 0);
  await call("SetKeyValue", { key, value: {} });
  assert.equal((await call("GetKeyValue", { key })).value.data, undefined);
}

export async function valueOfAMebibyte(stubs, key) {
  const call = calls(stubs, "KeyValues");
  const data = randomBytes(MIB);
  await call("SetKeyValue", { key, value: { data } });
  assert.ok((await call("GetKeyValue", { key })).value.data.equals(data));
}

export async function scanPages(stubs, key) {
  const call = calls(stubs, "KeyValues");
  for (const i of ["c", "a", "b"]) {
    await call("SetKeyValue", { key: `${key}/${i}`, value: bytes(i) });
  }
  const first = await call("ScanKeyValues", { prefix: `${key}/`, limit: 2 });
  assert.deepEqual(first.entries.map((entry) => entry.key), [`${key}/a`, `${key}/b`]);
  const second = await call("ScanKeyValues", { prefix: `${key}/`, limit: 2, page_token: first.next_page_token });
  assert.deepEqual(second.entries.map((entry) => entry.value.data.toString()), ["c"]);
  assert.equal(second.next_page_token, "");
  assert.equal((await call("CountKeyValues", { prefix: `${key}/` })).count, "3");
  await refused(grpc.status.INVALID_ARGUMENT, "page_token", () => call("ScanKeyValues", { prefix: key, page_token: first.next_page_token }));
  await refused(grpc.status.INVALID_ARGUMENT, "to comes before from", () => call("ScanKeyValues", { prefix: key, from: `${key}b`, to: `${key}a` }));
}

export async function batches(stubs, key) {
  const call = calls(stubs, "KeyValues");
  const durability = "DURABILITY_PERSISTENT";
  const names = ["a", "b", "c"].map((name) => `${key}/${name}`);
  const items = names.map((name) => ({ key: name, value: bytes(name), durability }));
  const set = async (atomic) => (await call("SetManyKeyValues", { items, atomic })).outcomes.map((each) => each.result.set);
  assert.deepEqual(await set(true), [true, true, true]);
  items[1].conditions = { if_revision: 7 };
  assert.deepEqual(await set(false), [true, false, true]);
  assert.deepEqual(await set(true), [false, false, false]);
  const reads = names.map((name) => ({ key: name, durability }));
  const got = (await call("GetManyKeyValues", { items: reads, atomic: true })).outcomes;
  assert.deepEqual(got.map((each) => each.result.value.data.toString()), names);
  assert.ok((await call("ExistsManyKeyValues", { items: reads })).outcomes.every((each) => each.result.found));
  await refused(grpc.status.INVALID_ARGUMENT, "must have 1 to 10,000", () => call("SetManyKeyValues", { items: [] }));
  await refused(grpc.status.INVALID_ARGUMENT, "item 1: key is empty", () => call("GetManyKeyValues", { items: [reads[0], { key: "", durability }] }));
  await refused(grpc.status.INVALID_ARGUMENT, "named twice", () => call("DeleteManyKeyValues", { items: [reads[0], reads[0]], atomic: true }));
  await refused(grpc.status.INVALID_ARGUMENT, "would delete every key", () => call("DeleteKeyValueRange", {}));
  assert.ok((await call("DeleteManyKeyValues", { items: [reads[0]] })).outcomes[0].result.deleted);
  const rest = await call("DeleteKeyValueRange", { prefix: `${key}/` });
  assert.deepEqual([rest.deleted, rest.next_page_token], ["2", ""]);
}

export async function transactions(stubs, key) {
  const call = calls(stubs, "Transactions");
  const [a, n] = [`${key}/a`, `${key}/n`];
  const fields = {
    conditions: [{ key: a, absent: true }],
    then: [{ set: { key: a, value: bytes("1") } }, { increment: { key: n, amount: 2 } }],
    otherwise: [{ get: { key: a } }, { exists: { key: n } }, { extend: { key: `${key}/none`, ttl_ms: 1_000 } }],
  };
  assert.equal((await call("ExecuteTransaction", fields)).results[1].increment.value, "2");
  const second = await call("ExecuteTransaction", fields);
  assert.deepEqual([second.succeeded, second.conditions], [false, [{ held: false, revision: "1" }]]);
  assert.deepEqual([second.results[0].get.value.data.toString(), second.results[1].exists.found, second.results[2].extend.found], ["1", true, false]);
  await refused(grpc.status.INVALID_ARGUMENT, "has no operations", () => call("ExecuteTransaction", {}));
  await refused(grpc.status.INVALID_ARGUMENT, "otherwise 1: key is empty", () => call("ExecuteTransaction", { otherwise: [{ get: { key: "" } }] }));
  await refused(grpc.status.FAILED_PRECONDITION, "", () => call("ExecuteTransaction", { then: [{ set: { key: n, value: bytes("x") } }, { increment: { key: a, amount: 1 } }], conditions: [{ key: n, value: bytes("2") }], fence: { resource: `${key}/lock`, token: 9 } }));
}

export async function scripts(stubs, key) {
  const call = calls(stubs, "Scripts");
  const parameters = { k: { text: `${key}/script` }, n: { integer: 7 } };
  const done = await call("RunScript", { script: "set @k @n\nlet v = get @k\nreturn [to_int(v) + 1, v]", parameters });
  assert.deepEqual([done.writes, done.result.array.items[0].integer], [1, "8"]);
  await refused(grpc.status.INVALID_ARGUMENT, "line 1, column", () => call("RunScript", { script: "set" }));
  await refused(grpc.status.FAILED_PRECONDITION, "enough", () => call("RunScript", { script: "set @k 9 throw 'enough'", parameters }));
  const after = await call("RunScript", { script: "let v = get @k return v", parameters });
  assert.deepEqual([after.result.entry.value.text, after.result.entry.revision], ["7", "1"]);
}

export async function streamKeys(stubs, key) {
  const call = calls(stubs, "KeyValues");
  const keys = Array.from({ length: 50 }, (_, i) => `${key}/${String(i).padStart(2, "0")}`);
  for (const each of keys) {
    await call("SetKeyValue", { key: each, value: { data: Buffer.alloc(4_000) } });
  }
  const read = async (fields) => {
    const messages = [];
    for await (const message of stubs.serverStream("/kahuna.v1.KeyValues/StreamKeyValues", { prefix: `${key}/`, durability: PERSISTENT, ...fields })) {
      messages.push(message);
    }
    return messages;
  };
  const messages = await read({});
  assert.ok(messages.length > 1);
  assert.deepEqual(messages.flatMap((message) => message.entries.map((entry) => entry.key)), keys);
  assert.equal(messages.at(-1).next_page_token, "");
  assert.deepEqual((await read({ descending: true, limit: 2 }))[0].entries.map((entry) => entry.key), keys.slice(-2).reverse());
  await refused(grpc.status.INVALID_ARGUMENT, "page_token", () => read({ page_token: "x" }));
  await refused(grpc.status.INVALID_ARGUMENT, "to comes before from", () => read({ from: `${key}/b`, to: `${key}/a` }));
}

export async function watchKeys(stubs, key) {
  const call = calls(stubs, "KeyValues");
  const watch = (fields) => stubs.serverStream("/kahuna.v1.KeyValues/WatchKeyValues", { durability: PERSISTENT, ...fields });
  const stream = watch({ bucket: key });
  const messages = stream[Symbol.asyncIterator]();
  const { position } = (await messages.next()).value;
  assert.ok(position.length > 0);
  await call("SetKeyValue", { key: `${key}/a`, value: bytes("1") });
  await call("SetKeyValue", { key: `${key}/a/deeper`, value: bytes("not told") });
  await call("DeleteKeyValue", { key: `${key}/a` });
  const events = [];
  while (events.length < 2) {
    events.push(...(await messages.next()).value.events);
  }
  assert.deepEqual(events.map((event) => [event.kind, event.key]), [["KEY_VALUE_EVENT_KIND_SET", `${key}/a`], ["KEY_VALUE_EVENT_KIND_DELETED", `${key}/a`]]);
  assert.ok(events[0].value.data.equals(Buffer.from("1")));
  stream.on("error", () => {});
  stream.cancel();
  const first = async (fields) => {
    for await (const message of watch(fields)) {
      return message;
    }
  };
  await refused(grpc.status.INVALID_ARGUMENT, "none of key, bucket and prefix", () => first({}));
  await refused(grpc.status.INVALID_ARGUMENT, "contradict", () => first({ prefix: "", with_state: true, from_position: position }));
  await refused(grpc.status.INVALID_ARGUMENT, "other durability", () => first({ prefix: "", durability: "DURABILITY_EPHEMERAL", from_position: position }));
}

export async function extendAndDelete(stubs, key) {
  const call = calls(stubs, "KeyValues");
  assert.equal((await call("ExtendKeyValue", { key, ttl_ms: 1 })).found, false);
  const { revision } = await call("SetKeyValue", { key, value: bytes("a") });
  const extended = await call("ExtendKeyValue", { key, ttl_ms: 600_000 });
  assert.ok(extended.extended && extended.revision === revision);
  assert.ok((await call("GetKeyValue", { key })).remaining_ttl_ms > 0);
  const kept = await call("DeleteKeyValue", { key, conditions: { if_value: bytes("b") } });
  assert.ok(!kept.deleted && kept.found && kept.revision === revision);
  const gone = await call("DeleteKeyValue", { key, return_previous: true });
  assert.ok(gone.deleted && gone.previous.data.equals(Buffer.from("a")) && gone.previous_revision === revision);
  assert.equal((await call("GetKeyValue", { key })).found, false);
  assert.ok((await call("GetKeyValue", { key, at_revision: revision })).found);
}

export async function incrementHappensOncePerNumber(stubs, key) {
  const call = calls(stubs, "KeyValues");
  const session = String(randomBytes(6).readUIntBE(0, 6) + 1);
  for (const number of ["1", "2", "2", "1", "3"]) {
    const metadata = { "x-kahuna-session": session, "x-kahuna-sequence": number };
    assert.equal((await call("IncrementKeyValue", { key, amount: 1 }, { metadata })).value, number);
  }
  assert.equal((await call("IncrementKeyValue", { key, amount: "-9223372036854775808" })).value, "-9223372036854775805");
  await refused(grpc.status.OUT_OF_RANGE, "64-bit", () => call("IncrementKeyValue", { key, amount: "-9223372036854775808" }));
}

export async function badRequestsAreRefused(stubs, key) {
  await refused(grpc.status.INVALID_ARGUMENT, "durability", () => calls(stubs, "KeyValues")("SetKeyValue", { key, durability: 0, value: bytes("x") }));
  await refused(grpc.status.INVALID_ARGUMENT, "1,025 bytes", () => calls(stubs, "Sequences")("CreateSequence", { name: "n".repeat(1025) }));
  await refused(grpc.status.INVALID_ARGUMENT, "lease_ms is 0", () => calls(stubs, "Locks")("AcquireLock", { resource: key, owner: "ann", mode: "LOCK_MODE_EXCLUSIVE" }));
}

export async function sequences(stubs, name) {
  const call = calls(stubs, "Sequences");
  await refused(grpc.status.NOT_FOUND, "create it first", () => call("NextSequenceValue", { name }));
  assert.equal((await call("CreateSequence", { name, max: 5 })).created, true);
  assert.equal((await call("CreateSequence", { name })).created, false);
  assert.equal((await call("NextSequenceValue", { name })).value, "1");
  assert.deepEqual(await call("ReserveSequenceRange", { name, count: 3 }), { first: "2", last: "4" });
  await refused(grpc.status.OUT_OF_RANGE, "only 1 values", () => call("ReserveSequenceRange", { name, count: 2 }));
  assert.deepEqual((await call("GetSequence", { name })).sequence, { name, initial: "1", increment: "1", min: "1", max: "5", cycle: false, latest: "4" });
  assert.deepEqual(await all((page_token) => call("ListSequences", { prefix: name, page_token }), (page) => page.sequences.map((each) => each.name)), [name]);
  assert.equal((await call("UpdateSequence", { name, cycle: true })).updated, true);
  assert.equal((await call("NextSequenceValue", { name })).value, "5");
  assert.equal((await call("NextSequenceValue", { name })).value, "1");
  assert.equal((await call("DeleteSequence", { name })).deleted, true);
  assert.equal((await call("GetSequence", { name })).sequence, null);
}

export async function locks(stubs, resource) {
  const call = calls(stubs, "Locks");
  const claim = (owner, more = {}, options = {}) => call("AcquireLock", { resource, owner, lease_ms: 20_000, mode: "LOCK_MODE_EXCLUSIVE", ...more }, options);
  const ann = await claim("ann", { note: Buffer.from("a note") });
  assert.ok(ann.granted && BigInt(ann.token) > 0n && ann.remaining_lease_ms > 0 && ann.remaining_lease_ms <= 20_000);
  const busy = await claim("bob");
  assert.ok(!busy.granted && busy.holder_token === ann.token);
  const { lock } = await call("GetLock", { resource });
  assert.deepEqual(lock.holders.map(({ owner, token, mode, note }) => [owner, token, mode, String(note)]), [["ann", ann.token, "LOCK_MODE_EXCLUSIVE", "a note"]]);
  assert.deepEqual(await all((page_token) => call("ListLocks", { prefix: resource, page_token }), (page) => page.locks.map((each) => each.resource)), [resource]);
  assert.ok((await call("ExtendLock", { resource, owner: "ann", token: ann.token, lease_ms: 50_000 })).remaining_lease_ms > 30_000);
  const mistaken = await call("ExtendLock", { resource, owner: "bob", token: ann.token, lease_ms: 50_000 });
  assert.ok(!mistaken.extended && mistaken.holder_token === ann.token);

  // What waits for the release: the next owner, and an observer.
  const waiting = claim("bob", { wait_ms: 25_000 });
  const observing = call("ObserveLock", { resource, known_token: ann.token, hold_ms: 20_000 });
  while ((await call("GetLock", { resource })).lock.waiting !== 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await assert.rejects(claim("cat", { wait_ms: 60_000 }, { deadlineMs: 500 }), { code: grpc.status.DEADLINE_EXCEEDED });
  assert.equal((await call("ReleaseLock", { resource, owner: "ann", token: ann.token })).released, true);
  const bob = await waiting;
  assert.ok(bob.granted && BigInt(bob.token) > BigInt(ann.token));
  assert.equal((await observing).token, bob.token);

  const fence = (token) => ({ key: resource, amount: 1, fence: { resource, token } });
  assert.equal((await calls(stubs, "KeyValues")("IncrementKeyValue", fence(bob.token))).value, "1");
  await refused(grpc.status.FAILED_PRECONDITION, `token ${bob.token} does`, () => calls(stubs, "KeyValues")("IncrementKeyValue", fence(ann.token)));
  assert.equal((await call("ReleaseLock", { resource, owner: "bob", token: bob.token })).released, true);
}

/** The items of all pages. */
async function all(read, items) {
  const found = [];
  for (let token = null; token !== ""; ) {
    const page = await read(token ?? "");
    found.push(...items(page));
    token = page.next_page_token;
  }
  return found;
}
