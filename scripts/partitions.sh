#!/usr/bin/env bash
# One partition or several: sets per second of three processes on this machine.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/partitions.sh

Starts clusters of three processes with 1, 2, 4, 8 and 16 partitions, three rounds of each, and
prints the median sets per second at 1, 16, 64 and 256 workers, with the ratio to one partition.
About seven minutes.
USAGE
}

read_options "$@" </dev/null
measure
