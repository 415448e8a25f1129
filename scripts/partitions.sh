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

if [[ $# -gt 0 ]]; then
  [[ "$1" == -h || "$1" == --help ]] || bad_usage "unknown option $1"
  usage
  exit 0
fi

export KAHUNA_CLUSTER_DIR="$KAHUNA_ROOT/.kahuna/partitions"
cluster="$KAHUNA_ROOT/scripts/cluster.sh"
endpoints=https://127.0.0.1:8082,https://127.0.0.1:8084,https://127.0.0.1:8086
build Kahuna.Server
build Kahuna.Benchmark
trap '"$cluster" clean >/dev/null 2>&1 || true' EXIT

printf '%-4s %-10s %10s %10s %10s\n' P leaders 64 256 1024
for partitions in 1 3 8; do
  for leaders in together spread; do
    "$cluster" clean >/dev/null 2>&1 || true
    "$cluster" up --partitions "$partitions" --leaders "$leaders" >/dev/null 2>&1
    sleep 4 # leaders move to where they belong
    row=()
    for workers in 64 256 1024; do
      row+=("$(run_bench -c "$endpoints" --workload set --buckets 64 --concurrency "$workers" --warmup 1 --duration 3 --format csv 2>/dev/null |
        awk -F, '$1 == "TOTAL" { printf "%d", $3 }')")
    done
    printf '%-4s %-10s %10s %10s %10s\n' "$partitions" "$leaders" "${row[@]}"
  done
done
