#!/usr/bin/env bash
# What size and age cost three processes on this machine: many keys, flushing and cutting, a snapshot
# under load, and half an hour of overwriting.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/scale.sh [options]

  --sections LIST  of keys,flush,snapshot,long; default keys,flush,snapshot
  --keys LIST      sizes for keys, with commas between; default 10000,1000000
  --stored N       keys that flush and snapshot work on; default 1000000
  --seconds S      measured seconds per point; default 10, and 30 for flush
  --rounds N       how often keys, flush and snapshot measure each of their points; default 3
  --minutes M      how long the keys are overwritten in long; default 30
  --output FILE    writes everything that was measured there as JSON

keys      what sets and gets, memory, disk and a restart cost at each size, against the smallest
flush     sets while states are flushed and the log is cut, against sets without
snapshot  sets while a follower is filled by snapshot, against sets without
long      10,000 keys overwritten at full speed: disk, memory and rate over the minutes

Each prints a table, its floors and "ok" or "BELOW"; the exit code is 0 also when one is below.
A million keys are written in half a minute, ten million in five. All lies under .kahuna/ and is removed; nothing stays running.
USAGE
}

sections=keys,flush,snapshot
keys=10000,1000000
stored=1000000
seconds=0
rounds=3
minutes=30
output=
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --stored | --seconds | --rounds | --minutes)
      [[ "${2:-}" =~ ^[1-9][0-9]{0,8}$ ]] || bad_usage "$1 needs a whole number from 1 on"
      printf -v "${1#--}" '%s' "$2"
      ;;
    --keys)
      [[ "${2:-}" =~ ^[1-9][0-9]{0,8}(,[1-9][0-9]{0,8})*$ ]] || bad_usage "--keys needs numbers with commas between"
      keys="$2"
      ;;
    --sections)
      [[ "${2:-}" =~ ^(keys|flush|snapshot|long)(,(keys|flush|snapshot|long))*$ ]] || bad_usage "--sections needs names of keys, flush, snapshot, long"
      sections="$2"
      ;;
    --output)
      [[ -n "${2:-}" && -d "$(dirname "${2:-}")" ]] || bad_usage "--output needs a file in a directory that exists"
      output="$2"
      ;;
    *) bad_usage "unknown option $1" ;;
  esac
  shift 2
done

[[ -r /proc/self/status ]] || die "this needs Linux: it reads /proc"
need_package python3 python3 --version
need_package curl curl --version
build Kahuna.Benchmark
build Kahuna.Server

work="$(make_work_dir)"
export KAHUNA_CLUSTER_DIR="$work/kahuna" KAHUNA_CLUSTER_PORTS="18482 18484 18486" KAHUNA_CLUSTER_TIMEOUT=600
export PYTHONDONTWRITEBYTECODE=1
driver=

finish() {
  local status=$?
  trap - EXIT
  if [[ -n "$driver" ]]; then
    stop_process "$driver" 20 || true
    wait "$driver" 2>/dev/null || true
  fi
  for directory in "$KAHUNA_CLUSTER_DIR"*; do
    [[ -d "$directory" ]] || continue
    KAHUNA_CLUSTER_DIR="$directory" "$KAHUNA_ROOT/scripts/cluster.sh" clean 2>/dev/null || true
  done
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# In the background, because a trap waits for the end of a command in the foreground.
python3 "$KAHUNA_ROOT/scripts/scale.py" --work "$work" --bench "$BENCH_DLL" --filesystem "$(stat -f -c %T "$work")" --sections "$sections" \
  --keys "$keys" --stored "$stored" --seconds "$seconds" --rounds "$rounds" --minutes "$minutes" ${output:+--output "$output"} </dev/null &
driver=$!
status=0
wait "$driver" || status=$?
driver=
say "took $SECONDS s"
exit "$status"
