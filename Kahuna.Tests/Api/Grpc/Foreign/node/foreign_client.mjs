// Calls a Kahuna server with gRPC for Node (@grpc/grpc-js), from the .proto files of this repository.
//
// Usage: node foreign_client.mjs ADDRESS CA_FILE DESCRIPTOR_SET
//
// ADDRESS is host:port, CA_FILE holds the trusted certificates in PEM, DESCRIPTOR_SET is a serialized
// google.protobuf.FileDescriptorSet with the files of health and reflection. Every check prints one line; the exit code
// is 0 when all of them hold. The server may be any node of a cluster; keys are written under the bucket foreign-client/.
import { randomUUID } from "node:crypto";

import * as data from "./data_checks.mjs";
import * as service from "./service_checks.mjs";
import { Stubs } from "./stubs.mjs";

const given = process.argv.slice(2);
if (given.length !== 3) {
  console.error("Usage: node foreign_client.mjs ADDRESS CA_FILE DESCRIPTOR_SET");
  process.exit(2);
}

const stubs = new Stubs(...given);
const key = `foreign-client/${randomUUID()}`;
let failed = 0;

// The names of a module come in the order of the alphabet, and this check looks at what the others did.
const { everyMethodHasAnswered, ...others } = { ...data, ...service };
for (const [name, check] of Object.entries({ ...others, everyMethodHasAnswered })) {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  try {
    await check(stubs, `${key}-${name}`);
    console.log(`ok      ${words}`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${words}\n${error.stack}`);
  }
}

stubs.close();
process.exitCode = failed ? 1 : 0;
