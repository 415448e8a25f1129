#!/usr/bin/env bash
# What the parts of a node that only one thread can run do at most, each alone.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/serial.sh [options]

  --callers LIST    requests of a frame; default 64,256
  --slices N        how often a part is measured; default 100

Prints the time of an operation of a loop, of a log, of a link between nodes and of a stream of a client, each alone.
USAGE
}

read_options "$@" <<'OPTIONS'
callers [1-9][0-9]*(,[1-9][0-9]*)* whole numbers from 1 on
slices [1-9][0-9]* a whole number from 1 on
OPTIONS

measure
