#!/usr/bin/env bash
# What an option of the nodes costs or brings: the rates of two clusters with two values of it, in turn.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/option-cost.sh [options]

  --option NAME     an option of kahuna-server; default metrics
  --first VALUE, --second VALUE   its values; default on and off
  --rounds N        pairs of clusters; default 3
  --turns N         how often the two of a pair take turns; default 10
  --seconds S       measured seconds per turn; default 2
  --workers LIST    default 256
  --workloads LIST  of set, get and mixed; default set,get

Prints medians of rates, processor time and latencies, and of their ratios. Scrapes with metrics on.
USAGE
}

read_options "$@" <<'OPTIONS'
option [a-z][a-z-]* the name of an option
first .+ a value
second .+ a value
rounds [1-9][0-9]* a whole number from 1 on
turns [1-9][0-9]* a whole number from 1 on
seconds [1-9][0-9]* a whole number from 1 on
workers [1-9][0-9]*(,[1-9][0-9]*)* whole numbers from 1 on
workloads (set|get|mixed)(,(set|get|mixed))* names of set, get, mixed
OPTIONS

measure
