#!/usr/bin/env bash
# Three real processes serve legitimate load, first alone and then beside hostile clients of every kind that the tests
# know.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/attack.sh [--minutes M] [--only KIND,KIND]

  --minutes M   how long the attackers go on; default 10
  --only KIND   only these kinds of attackers, separated by commas: hello-bytes, connections, slow-reader,
                colliding-keys, fenced-writes, observers, keyed-calls, sessions, broken-frames, crowd,
                rapid-reset, watchers, bad-text

Bytes that are no TLS, floods of connections and streams, readers that never read, keys that collide, writes under
tokens of crowded locks, observers, idempotency keys, broken frames, crowds of readers that one release lets in,
streams that are reset at once, watchers that do not read, text that is no UTF-8: all of them at the same time,
with pauses. Each of them must have carried out a round and reached what it attacks.
Before, 200,000 keys are set as fast as the cluster takes them, so that it is measured as one in use.
Legitimate calls must all succeed, their p99 may be ten times as long as without attackers, and two minutes
afterwards the nodes may hold a fifth more memory than before, beside the outcomes of idempotency keys,
which they have promised to remember for an hour.

Exit code 0: so it was; 1: something is wrong; 2: bad usage.
USAGE
}

read_options "$@" <<'OPTIONS'
minutes 0*[1-9][0-9]{0,3}(\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9][0-9]{0,2} a number above 0
only [a-z,-]+ kinds of attackers; --help names them
OPTIONS

need_dotnet
build Kahuna.Tests
run_tests_command attack "${arguments[@]}"
