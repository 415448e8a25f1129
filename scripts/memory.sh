#!/usr/bin/env bash
# What a node needs for a million keys, and how long its garbage collector stops it while they
# are overwritten at full speed.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/memory.sh [options]

  --keys N         default 1000000
  --value-size N   bytes; default 128
  --seconds S      how long the keys are overwritten for the second measurement; default 20
  --workers N      default 256

Starts one standalone node on a port of its own, fills it through kahuna-bench, prints the memory
of its process (managed and native together) and the garbage collector's counts before and after
the overwriting, compares them with the floors (350 MB, longest pause 10 ms) and leaves nothing
running.
USAGE
}

read_options "$@" <<'OPTIONS'
keys [1-9][0-9]* a whole number from 1 on
value-size [1-9][0-9]* a whole number from 1 on
seconds [1-9][0-9]* a whole number from 1 on
workers [1-9][0-9]* a whole number from 1 on
OPTIONS
measure
