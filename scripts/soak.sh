#!/usr/bin/env bash
# Three real processes with TLS and disks, under load and with faults at random moments; what clients were answered is
# checked for linearizability.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/soak.sh [--minutes M] [--seed N] [--history FILE]

  --minutes M      how long faults go on; default 10
  --seed N         decides about operations and faults; default: another one each time
  --history FILE   writes every operation and what a watch was told there (about 23 MB a minute)

Nodes are killed, stopped, restarted, all killed at once, and cut off from each other. Each key's history
is checked as soon as the key is retired, with what a watch was told of it; at the end all nodes must have the
same state, and every caller an answer.
Without --history only keys with a finding are written, to .kahuna/soak-N.jsonl.

Exit code 0: clean; 1: something is wrong, or the run proved nothing; 2: bad usage.
USAGE
}

read_options "$@" <<'OPTIONS'
minutes 0*[1-9][0-9]{0,4}(\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9][0-9]{0,2} a number above 0
seed [0-9]{1,18} a whole number
history FILE the name of a file in a directory that exists
OPTIONS

need_dotnet
build Kahuna.Tests

# The nodes' directories: on a real disk, and gone at the end also when the run is broken off.
work="$(make_work_dir)"
trap 'rm -rf "$work"' EXIT
status=0
TMPDIR="$work" run_tests_command soak "${arguments[@]}" || status=$?
exit "$status"
