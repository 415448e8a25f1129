#!/usr/bin/env bash
# What watches cost: how late changes arrive, the rate of sets beside watches, and memory of idle ones.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/watches.sh [--workers N] [--seconds S] [--rounds N] [--distinct N] [--same N] [--idle N]

Starts three processes with one partition. Prints the round trip of sets at half of the greatest rate and
the time after which a watch delivers their changes, with the ratio of the medians; sets per second by N
workers (default 64) without watches and beside N of distinct keys (default 1000) and N of one key (default
10000), of ten clients, in turn for S seconds (default 3) and N rounds (default 3); and the memory that N
idle watches (default 100000) of one client take up. About two minutes.
USAGE
}

read_options "$@" <<'OPTIONS'
workers [1-9][0-9]{0,3} a whole number from 1 to 9999
seconds [1-9][0-9]* a whole number from 1 on
rounds [1-9][0-9]* a whole number from 1 on
distinct [1-9][0-9]{0,3} a whole number from 1 to 9999
same [1-9][0-9]{0,5} a whole number from 1 to 999999
idle [1-9][0-9]{0,5} a whole number from 1 to 999999
OPTIONS
measure
