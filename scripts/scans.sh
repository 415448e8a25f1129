#!/usr/bin/env bash
# What scans cost: pages among few and many keys, a scan of all keys, and the calls of others beside it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/scans.sh [--keys N] [--rounds N]

Starts three processes with one partition, writes keys of 15 bytes with values of 128 bytes, and prints the
time of a page of 1,000 keys among 2,000 and among N keys (default 1000000) with their ratio, the rate of a
scan of all of them by the SDK and by a gRPC stream, and the times of another client's gets alone, beside the
scan, and beside a client with 256 pages or 256 counts in flight. Then starts three processes with three
partitions, and prints the rate and the longest time of sets by 64 workers: alone, beside a cut that stays
open, and beside consistent scans of the same keys. About two minutes.
USAGE
}

read_options "$@" <<'OPTIONS'
keys [1-9][0-9]{3,8} a whole number from 1000 on
rounds [1-9][0-9]* a whole number from 1 on
OPTIONS
measure
