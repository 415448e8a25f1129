#!/usr/bin/env bash
# Checks a recorded history of client operations for linearizability.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/check-history.sh FILE [options]

  --ttl-slack-ms N      so much earlier than its time to live a key may be seen expired; default 10
  --ttl-lateness-ms N   so much later a key may still be seen; default: at any time
  --states-max N        states of one key after which the search gives up; default 2000000
  --explain-seconds N   time for finding the operations that contradict each other; default 20

FILE holds one operation per line; docs/histories.md describes it. The exit code is 0 when the
history is linearizable, 1 when it is not, and 2 when FILE is unreadable or the search gave up.
For each key that is not linearizable the few operations that contradict each other are printed.

KAHUNA_TESTS_DLL names a Kahuna.Tests.dll to run; nothing is built then.
USAGE
}

# Exit code 1 is a verdict here, so nothing else may end with it.
unreadable() {
  say "$*"
  exit 2
}

file=
options=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --ttl-slack-ms | --ttl-lateness-ms | --states-max | --explain-seconds)
      [[ "${2:-}" =~ ^[0-9]{1,9}$ ]] || bad_usage "$1 needs a whole number from 0 on"
      options+=("$1" "$2")
      shift 2
      ;;
    -*) bad_usage "unknown option $1" ;;
    *)
      [[ -z "$file" ]] || bad_usage "one file at a time, not $1 too"
      [[ -n "$1" ]] || bad_usage "the name of the file is empty"
      file="$1"
      shift
      ;;
  esac
done
[[ -n "$file" ]] || bad_usage "a history file is needed"
[[ -r "$file" && ! -d "$file" ]] || unreadable "cannot read $file"

if [[ -z "${KAHUNA_TESTS_DLL:-}" ]]; then
  (build Kahuna.Tests) || exit 2
fi
[[ -r "$TESTS_DLL" ]] || unreadable "there is no $TESTS_DLL"
status=0
run_tests_command check-history "$file" "${options[@]}" || status=$?
((status <= 2)) || unreadable "the checker broke off with exit code $status"
exit "$status"
