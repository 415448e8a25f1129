#!/usr/bin/env bash
# What one operation costs: processor time per process and kind of thread, while kahuna-bench drives three processes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/cost.sh [options]

  --workload NAME  set, get or mixed; default set
  --workers LIST   default 1,64,256
  --seconds S      measured seconds per point; default 5
  --keys N         keys that are there and drawn from; default 10000

Starts a cluster of three processes, warms it up, and prints for each number of workers: the rate,
operations per log entry, and microseconds of processor time per operation, split by process and by
kind of thread. Linux only (it reads /proc).
USAGE
}

workload=set
workers=1,64,256
seconds=5
keys=10000
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --workload)
      [[ "${2:-}" =~ ^(set|get|mixed)$ ]] || bad_usage "--workload needs set, get or mixed"
      workload="$2"
      ;;
    --workers)
      [[ "${2:-}" =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || bad_usage "--workers needs numbers with commas between"
      workers="$2"
      ;;
    --seconds)
      [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || bad_usage "--seconds needs a whole number from 1 on"
      seconds="$2"
      ;;
    --keys)
      [[ "${2:-}" =~ ^[1-9][0-9]{0,8}$ ]] || bad_usage "--keys needs a whole number from 1 on"
      keys="$2"
      ;;
    *) bad_usage "unknown option $1" ;;
  esac
  shift 2
done

[[ -r /proc/self/task ]] || die "this needs Linux: it reads /proc"
need_package python3 python3 --version
build Kahuna.Server
build Kahuna.Benchmark

work="$(make_work_dir)"
export KAHUNA_CLUSTER_DIR="$work/kahuna" KAHUNA_CLUSTER_PORTS="18482 18484 18486"
endpoints=https://127.0.0.1:18482,https://127.0.0.1:18484,https://127.0.0.1:18486
finish() {
  local status=$?
  trap - EXIT
  "$KAHUNA_ROOT/scripts/cluster.sh" clean >/dev/null 2>&1 || true
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$KAHUNA_ROOT/scripts/cluster.sh" up >/dev/null 2>"$work/up.log" || { cat "$work/up.log" >&2; die "the cluster does not start"; }

run_bench -c "$endpoints" --workload set --key-space "$keys" --seed-keys "$keys" --warmup 0 --duration 1 --format json --output "$work/fill.json" >/dev/null 2>&1

# A fresh process compiles its code while it serves its first seconds; that is no operation's cost.
for count in 64 256; do
  run_bench -c "$endpoints" --workload "$workload" --key-space "$keys" --concurrency "$count" --warmup 1 --duration 5 --format json --output "$work/heat.json" >/dev/null 2>&1
done

IFS=, read -r -a worker_list <<<"$workers"
for count in "${worker_list[@]}"; do
  # Not by run_bench: the number of a function's shell is not the program's.
  dotnet "$BENCH_DLL" -c "$endpoints" --workload "$workload" --key-space "$keys" --seed-keys 0 --concurrency "$count" --warmup 1 --duration "$((seconds + 4))" \
    --format json --output "$work/run.json" >/dev/null 2>"$work/bench.log" &
  bench=$!
  sleep 4
  python3 "$KAHUNA_ROOT/scripts/cost_report.py" --sample "$work/sample.json" --seconds "$seconds" --bench "$bench" --endpoints "$endpoints"
  wait "$bench" || { tail -n 20 "$work/bench.log" >&2; die "kahuna-bench failed"; }
  python3 "$KAHUNA_ROOT/scripts/cost_report.py" --print "$work/sample.json" --report "$work/run.json" --workload "$workload" --workers "$count"
done
