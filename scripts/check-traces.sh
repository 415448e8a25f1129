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

read_options "$@" <<'OPTIONS'
- .+ the name of a file is empty
OPTIONS
[[ ${#operands[@]} -gt 0 ]] || bad_usage "the traces of all nodes are needed"
check_files "${operands[@]}"
