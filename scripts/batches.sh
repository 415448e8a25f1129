#!/usr/bin/env bash
# What batches bring: sets per second of single calls, of batches and of atomic batches; and transactions.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/batches.sh [--workers N] [--items N] [--seconds S] [--rounds N]

Starts three processes with one partition. Workers (default 64) write keys with values of 128 bytes one by
one, in batches of N items (default 100), and in atomic batches, and run transactions of a condition, two
gets and two sets, and interactive ones of two gets and two sets, in turn for S seconds (default 3) and N
rounds (default 3). Prints the median sets (or transactions) per second of each with its ratio to single
sets, and the rate of a delete by prefix of 200,000 keys. Less than a minute.
USAGE
}

read_options "$@" <<'OPTIONS'
workers [1-9][0-9]{0,3} a whole number from 1 to 9999
items [1-9][0-9]{0,2} a whole number from 1 to 999
seconds [1-9][0-9]* a whole number from 1 on
rounds [1-9][0-9]* a whole number from 1 on
OPTIONS
measure
