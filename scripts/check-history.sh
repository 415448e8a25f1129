#!/usr/bin/env bash
# Checks a recorded history of client operations for linearizability and its watches against the writes, or a history of
# transactions for strict serializability.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/check-history.sh FILE [options]

  --ttl-slack-ms N      so much earlier than its time to live a key may be seen expired; default 10
  --ttl-lateness-ms N   so much later a key may still be seen; default: at any time
  --states-max N        states of one key after which the search gives up; default 2000000
  --explain-seconds N   time for finding the operations that contradict each other; default 20

FILE holds one operation or watch per line, or one list-append transaction; docs/histories.md describes
them. The exit code is 0 when the history is linearizable (transactions: strictly serializable) and its
watches were told every change once and in order, 1 when it is not, and 2 when FILE is unreadable or the
search gave up. The options are for operations.
For each key that is not linearizable the few operations that contradict each other are printed.

KAHUNA_TESTS_DLL names a Kahuna.Tests.dll to run; nothing is built then.
USAGE
}

read_options "$@" <<'OPTIONS'
- .+ the name of the file is empty
ttl-slack-ms [0-9]{1,9} a whole number from 0 on
ttl-lateness-ms [0-9]{1,9} a whole number from 0 on
states-max [0-9]{1,9} a whole number from 0 on
explain-seconds [0-9]{1,9} a whole number from 0 on
OPTIONS
[[ ${#operands[@]} -gt 0 ]] || bad_usage "a history file is needed"
[[ ${#operands[@]} -eq 1 ]] || bad_usage "one file at a time, not ${operands[1]} too"
check_files "${operands[0]}"
