#!/usr/bin/env bash
# What counting operations costs: the rates of three processes with --metrics on and off, in turn.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/metrics-cost.sh [options]

  --rounds N        pairs of clusters; default 3
  --turns N         how often the two of a pair take turns; default 10
  --seconds S       measured seconds per turn; default 2
  --workers N       default 256
  --workloads LIST  of set, get and mixed; default set,get

Starts a cluster of three processes with --metrics on and one with --metrics off in each round, which
take turns. Prints the median rates, the processor time of the nodes for each operation, and the median
ratio of the turns. The nodes with metrics are scraped once in each turn.
USAGE
}

read_options "$@" <<'OPTIONS'
rounds [1-9][0-9]* a whole number from 1 on
turns [1-9][0-9]* a whole number from 1 on
seconds [1-9][0-9]* a whole number from 1 on
workers [1-9][0-9]* a whole number from 1 on
workloads (set|get|mixed)(,(set|get|mixed))* names of set, get, mixed
OPTIONS

measure
