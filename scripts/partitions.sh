#!/usr/bin/env bash
# One partition or several, leaders together or spread: sets per second of three processes on this machine.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/partitions.sh

Starts a cluster of three processes with 1, 3 and 8 partitions, with all leaders on one node and
spread over the nodes, and prints sets per second at 64, 256 and 1,024 workers, keys in 64 buckets.
About two minutes.
USAGE
}

read_options "$@" </dev/null
measure
