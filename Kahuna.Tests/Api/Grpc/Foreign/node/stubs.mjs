// Methods by name, from the .proto files alone: no generated code.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

export const PATIENCE_MS = 30_000;
export const KAHUNA_FILES = ["key_values", "transactions", "scripts", "sequences", "locks", "cluster"].map((name) => `kahuna/v1/${name}.proto`);

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../../../../..");
const LOADING = { keepCase: true, longs: String, enums: String, bytes: Buffer, defaults: true };

// protobufjs, which the loader brings, has google/api/annotations.proto.
const require = createRequire(createRequire(import.meta.url).resolve("@grpc/proto-loader"));
const INCLUDED = [join(ROOT, "Kahuna.Server/Api/Protos"), join(ROOT, "Kahuna.Client/Wire/Protos"), dirname(require.resolve("protobufjs/package.json"))];

/** The description of files that are named as in an import. */
export function loadFiles(names) {
  return loader.loadSync(names, { ...LOADING, includeDirs: INCLUDED });
}

/** The description of the files of a serialized google.protobuf.FileDescriptorSet. */
export function loadSet(serialized) {
  return loader.loadFileDescriptorSetFromBuffer(serialized, LOADING);
}

/** The methods of the services of a description, by path: "/package.Service/Method". */
export function methodsOf(description) {
  const services = Object.values(description).filter((each) => !("format" in each));
  return new Map(services.flatMap((service) => Object.values(service)).map((method) => [method.path, method]));
}

/** Calls over one channel. */
export class Stubs {
  /** The paths of the methods that have given a reply here. */
  answered = new Set();

  constructor(address, caFile, descriptorSet) {
    this.kahuna = loadFiles(KAHUNA_FILES);
    this.methods = new Map([...methodsOf(loadSet(readFileSync(descriptorSet))), ...methodsOf(this.kahuna)]);
    this.client = new grpc.Client(address, grpc.credentials.createSsl(readFileSync(caFile)), { "grpc.max_receive_message_length": 8 << 20 });
  }

  close() {
    this.client.close();
  }

  /** One request, one reply. A call that fails rejects with an error that has code, details and metadata. */
  unary(path, request, { metadata = {}, deadlineMs = PATIENCE_MS } = {}) {
    return new Promise((resolve, reject) => {
      this.client.makeUnaryRequest(...this.#parts(path), request, metadataOf(metadata), within(deadlineMs), (error, reply) => (error ? reject(error) : resolve(reply)));
    });
  }

  /** One request, many replies: a stream that can be iterated, and cancelled. */
  serverStream(path, request) {
    return this.client.makeServerStreamRequest(...this.#parts(path), request, new grpc.Metadata(), within(PATIENCE_MS));
  }

  /** Many requests, many replies. */
  duplex(path) {
    return this.client.makeBidiStreamRequest(...this.#parts(path), new grpc.Metadata(), within(PATIENCE_MS));
  }

  #parts(path) {
    const method = this.methods.get(path);
    const read = (message) => {
      this.answered.add(path);
      return method.responseDeserialize(message);
    };
    return [path, method.requestSerialize, read];
  }
}

function within(ms) {
  return { deadline: new Date(Date.now() + ms) };
}

function metadataOf(fields) {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(fields)) {
    metadata.set(name, value);
  }
  return metadata;
}
