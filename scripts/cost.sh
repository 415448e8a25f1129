#!/usr/bin/env bash
# What one operation costs: processor time per process and kind of thread, while kahuna-bench drives three processes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/cost.sh [options]

  --workload NAME  set, get, mixed or lock; default set
  --workers LIST   default 1,64,256
  --seconds S      measured seconds per point; default 5
  --keys N         keys that are there and drawn from; default 10000
  --calls S        also counts system calls per batch, tracing each process with strace for S seconds

Starts a cluster of three processes, warms it up, and prints for each number of workers: the rate,
operations per log entry, and microseconds of processor time per operation, split by process and by
kind of thread. Linux only (it reads /proc).
USAGE
}

read_options "$@" <<'OPTIONS'
workload set|get|mixed|lock set, get, mixed or lock
workers [1-9][0-9]*(,[1-9][0-9]*)* numbers with commas between
seconds [1-9][0-9]* a whole number from 1 on
keys [1-9][0-9]{0,8} a whole number from 1 on
calls [0-9]{1,2} a whole number
OPTIONS

[[ -r /proc/self/task ]] || die "this needs Linux: it reads /proc"
measure
