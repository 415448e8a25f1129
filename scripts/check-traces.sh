#!/usr/bin/env bash
# Checks the rules of the consensus on the traces of all nodes of a cluster.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/check-traces.sh FILE...

The files are what the nodes of one cluster wrote with the server's option --trace, all of them, on
one machine; docs/simulation.md describes format and rules. The exit code is 0 when every rule
holds, 1 when one is broken, and 2 when the traces cannot be read or prove nothing. For a broken
rule it prints the rule, the group, the nodes and the lines that show it.

KAHUNA_TESTS_DLL names a Kahuna.Tests.dll to run; nothing is built then.
USAGE
}

# Exit code 1 is a verdict here, so nothing else may end with it.
unreadable() {
  say "$*"
  exit 2
}

files=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    -*) bad_usage "unknown option $1" ;;
    '') bad_usage "the name of a file is empty" ;;
    *)
      files+=("$1")
      shift
      ;;
  esac
done
[[ ${#files[@]} -gt 0 ]] || bad_usage "the traces of all nodes are needed"
for file in "${files[@]}"; do
  [[ -r "$file" && ! -d "$file" ]] || unreadable "cannot read $file"
done

if [[ -z "${KAHUNA_TESTS_DLL:-}" ]]; then
  (build Kahuna.Tests) || exit 2
fi
[[ -r "$TESTS_DLL" ]] || unreadable "there is no $TESTS_DLL"
status=0
run_tests_command check-traces "${files[@]}" || status=$?
((status <= 2)) || unreadable "the checker broke off with exit code $status"
exit "$status"
