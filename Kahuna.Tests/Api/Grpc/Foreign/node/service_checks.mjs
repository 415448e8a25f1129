// The checks of foreign_client.mjs that are about the cluster, its framed stream, health and reflection.
import assert from "node:assert/strict";

import grpc from "@grpc/grpc-js";

import { loadSet, methodsOf } from "./stubs.mjs";

const HEALTH = "/grpc.health.v1.Health";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const SERVICES = ["kahuna.v1.Cluster", "kahuna.v1.KeyValues", "kahuna.v1.Locks", "kahuna.v1.Scripts", "kahuna.v1.Sequences", "kahuna.v1.Transactions"];

// Of docs/wire-format.md.
const WIRE_VERSION = 3;
const [HELLO, REQUESTS, REPLIES, MAP] = [1, 2, 3, 4];
const [GET, PERSISTENT, FOUND, FORWARD] = [0x80, 1, 2, 0x80000000];
const [HEADER_BYTES, REPLY_BYTES, OUTCOME_BYTES] = [8, 8, 24];

export async function describeCluster(stubs) {
  const cluster = await stubs.unary("/kahuna.v1.Cluster/DescribeCluster", {}, { metadata: { "x-text": "a value", "x-blob-bin": Buffer.from([0, 255]) } });
  assert.ok(cluster.cluster_id && cluster.ready);
  assert.deepEqual(cluster.nodes.map((node) => node.id), [1, 2, 3]);
}

export async function watchCluster(stubs) {
  const first = await firstAndCancel(stubs.serverStream("/kahuna.v1.Cluster/WatchCluster", {}));
  assert.ok(first.cluster_id && first.partitions.length > 0);
}

export async function exchangeGreetsAndAnswersAFrame(stubs, key) {
  await stubs.unary("/kahuna.v1.KeyValues/SetKeyValue", { key, value: { data: Buffer.from("framed") }, durability: PERSISTENT });
  const stream = stubs.duplex("/kahuna.v1.Cluster/Exchange");
  const status = new Promise((resolve) => stream.on("status", resolve));
  stream.write({ payload: header(HELLO, WIRE_VERSION, 0) });
  stream.write({ payload: Buffer.concat([header(REQUESTS, 0, 1), getRequest(7, key)]) });
  stream.end();
  const frames = [];
  for await (const { payload } of stream) {
    frames.push(payload);
  }
  assert.equal((await status).code, grpc.status.OK);
  const slotMapVersion = Buffer.alloc(8);
  slotMapVersion.writeBigUInt64LE(1n);
  assert.deepEqual(frames[0], Buffer.concat([header(HELLO, WIRE_VERSION, 1), slotMapVersion]));
  assert.deepEqual(frames[1].subarray(0, HEADER_BYTES), header(MAP, 0, 1));
  const map = stubs.methods.get("/kahuna.v1.Cluster/DescribeCluster").responseDeserialize(frames[1].subarray(HEADER_BYTES));
  assert.equal(map.nodes.length, 3);
  const answer = frames.find((frame) => frame[0] === REPLIES);
  assert.equal(answer.readUInt32LE(HEADER_BYTES), 7);
  assert.equal(answer[HEADER_BYTES + REPLY_BYTES], FOUND);
  assert.equal(String(answer.subarray(HEADER_BYTES + REPLY_BYTES + OUTCOME_BYTES)), "framed");
}

export async function watchStreamGreets(stubs) {
  const stream = stubs.duplex("/kahuna.v1.Cluster/Watch");
  stream.write({ payload: header(HELLO, WIRE_VERSION, 0) });
  stream.end();
  const frames = [];
  for await (const { payload } of stream) {
    frames.push(payload);
  }
  assert.deepEqual(frames.map((frame) => frame[0]), [HELLO]);
}

export async function health(stubs) {
  for (const service of ["", ...SERVICES]) {
    assert.equal((await stubs.unary(`${HEALTH}/Check`, { service })).status, "SERVING", service);
  }
  await assert.rejects(stubs.unary(`${HEALTH}/Check`, { service: "no.such.Service" }), { code: grpc.status.NOT_FOUND });
}

export async function healthIsWatched(stubs) {
  assert.equal((await firstAndCancel(stubs.serverStream(`${HEALTH}/Watch`, { service: "kahuna.v1.Locks" }))).status, "SERVING");
  assert.equal((await firstAndCancel(stubs.serverStream(`${HEALTH}/Watch`, { service: "no.such.Service" }))).status, "SERVICE_UNKNOWN");
}

export async function reflectionGivesTheMethodsOfTheProtoFiles(stubs) {
  const [listed, ...files] = await reflect(stubs, [{ list_services: "" }, ...SERVICES.map((file_containing_symbol) => ({ file_containing_symbol }))]);
  const names = listed.list_services_response.service.map((each) => each.name);
  assert.deepEqual(SERVICES.filter((name) => !names.includes(name)), []);
  const unique = new Set(files.flatMap((reply) => reply.file_descriptor_response.file_descriptor_proto).map((file) => file.toString("base64")));
  const described = methodsOf(loadSet(setOf([...unique].map((file) => Buffer.from(file, "base64")))));
  assert.deepEqual([...described.keys()].sort(), [...methodsOf(stubs.kahuna).keys()].sort());
}

export async function unknownMethodsAreUnimplemented(stubs) {
  const call = (done) => stubs.client.makeUnaryRequest("/kahuna.v1.KeyValues/NoSuchMethod", (each) => each, (each) => each, Buffer.alloc(0), done);
  const error = await new Promise((resolve) => call(resolve));
  assert.equal(error.code, grpc.status.UNIMPLEMENTED);
}

export async function everyMethodHasAnswered(stubs) {
  const methods = [...methodsOf(stubs.kahuna).keys(), `${HEALTH}/Check`, `${HEALTH}/Watch`, REFLECTION];
  assert.deepEqual(methods.filter((path) => !stubs.answered.has(path)), []);
  assert.deepEqual([...new Set(methods.map((path) => path.split("/")[1]))].filter((name) => name.startsWith("kahuna.")).sort(), SERVICES);
}

/** The first reply of a call that is cancelled then, and ends so. */
async function firstAndCancel(stream) {
  let first;
  try {
    for await (const reply of stream) {
      first ??= reply;
      stream.cancel();
    }
  } catch (error) {
    assert.equal(error.code, grpc.status.CANCELLED);
    return first;
  }
  throw new assert.AssertionError({ message: "the cancelled stream went on to an end" });
}

async function reflect(stubs, requests) {
  const stream = stubs.duplex(REFLECTION);
  requests.forEach((request) => stream.write(request));
  stream.end();
  const replies = [];
  for await (const reply of stream) {
    replies.push(reply);
  }
  return replies;
}

/** A google.protobuf.FileDescriptorSet of serialized files: field 1, once for each. */
function setOf(files) {
  return Buffer.concat(files.flatMap((file) => [Buffer.from([0x0a, ...varint(file.length)]), file]));
}

function varint(number) {
  return number < 0x80 ? [number] : [(number & 0x7f) | 0x80, ...varint(number >> 7)];
}

/** The header of a frame's payload. */
function header(kind, version, count) {
  const buffer = Buffer.alloc(HEADER_BYTES);
  buffer.writeUInt8(kind, 0);
  buffer.writeUInt16LE(version, 2);
  buffer.writeUInt32LE(count, 4);
  return buffer;
}

/** A request of a frame: read a key, wherever its leader is. */
function getRequest(number, key) {
  const command = Buffer.alloc(12);
  command.writeUInt8(GET, 0);
  command.writeUInt8(PERSISTENT, 1);
  command.writeUInt16LE(Buffer.byteLength(key), 4);
  const request = Buffer.alloc(12);
  request.writeUInt32LE(number, 0);
  request.writeUInt32LE(FORWARD, 4);
  request.writeUInt32LE(command.length + Buffer.byteLength(key), 8);
  return Buffer.concat([request, command, Buffer.from(key)]);
}
