#!/usr/bin/env bash
# What authentication costs: sets per second with it and without it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/access.sh [--workers N] [--seconds S] [--rounds N]

Starts two clusters of three processes, one with authentication and one without. Prints the median sets per second
by N workers (default 64), in turn for S seconds (default 4) and N rounds (default 5): without authentication, of an
administrator, and of a user with 1,000 grants and all quotas; with the ratio to the first. About four minutes.
USAGE
}

read_options "$@" <<'OPTIONS'
workers [1-9][0-9]{0,3} a whole number from 1 to 9999
seconds [1-9][0-9]* a whole number from 1 on
rounds [1-9][0-9]* a whole number from 1 on
OPTIONS
measure
