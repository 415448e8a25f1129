#!/usr/bin/env bash
# What a node needs for a million keys, and how long its garbage collector stops it while they
# are overwritten at full speed.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/memory.sh [options]

  --keys N         default 1000000
  --value-size N   bytes; default 128
  --seconds S      how long the keys are overwritten for the second measurement; default 20
  --workers N      default 256

Starts one standalone node on a port of its own, fills it through kahuna-bench, prints the memory
of its process (managed and native together) and the garbage collector's counts before and after
the overwriting, compares them with the floors (350 MB, longest pause 10 ms) and leaves nothing
running.
USAGE
}

keys=1000000
value_size=128
overwrite_s=20
workers=256
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --keys | --value-size | --seconds | --workers)
      [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || bad_usage "$1 needs a whole number from 1 on"
      case "$1" in
        --keys) keys="$2" ;;
        --value-size) value_size="$2" ;;
        --seconds) overwrite_s="$2" ;;
        --workers) workers="$2" ;;
      esac
      ;;
    *) bad_usage "unknown option $1" ;;
  esac
  shift 2
done

need_dotnet
need_package curl curl --version
need_package python3 python3 --version
build Kahuna.Benchmark
build Kahuna.Server

port=18782
url="https://127.0.0.1:$port"
work="$(make_work_dir)"
export KAHUNA_DEV_CERT_DIR="$work/certificates"
node=

finish() {
  local status=$?
  trap - EXIT
  if [[ -n "$node" ]]; then
    stop_process "$node" 10 || true
    wait "$node" 2>/dev/null || true
  fi
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fetch() { curl --silent --fail --max-time 5 --cacert "$work/certificates/ca.pem" "$url$1" 2>/dev/null; }
ready_or_dead() { fetch /readyz >/dev/null || process_gone "$node"; }

load() {
  run_bench -c "$url" --workload set --key-space "$keys" --value-size "$value_size" --concurrency "$workers" \
    --duration "$1" --warmup 1 --format json --output "$work/load.json" >"$work/bench.log" 2>&1 ||
    { tail -n 20 "$work/bench.log" >&2; die "the load failed"; }
}

# One field of the collector's counts in GET /status.
gc_field() {
  fetch /status | python3 -c 'import json, sys; print(json.load(sys.stdin)["gc"][sys.argv[1]])' "$1"
}

sets_done() {
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1], encoding="utf-8"))["aggregate"]["count"])' "$work/load.json"
}

resident_kb() { sed -n "s/^$1:[[:space:]]*\([0-9]*\) kB/\1/p" "/proc/$node/status"; }

port_in_use "$port" && die "port $port is in use"
say "starting a standalone node on $url"
dotnet "$SERVER_DLL" --listen "$url" --advertise "$url" --data "$work/data" >"$work/node.log" 2>&1 </dev/null &
node=$!
wait_until 60 ready_or_dead || die "the node does not become ready"
process_gone "$node" && { tail -n 20 "$work/node.log" >&2; die "the node ended while it was starting"; }

# Keys are drawn at random: after 9 draws per key, 1 in 8,000 is still missing.
say "filling $keys keys with $value_size bytes each, in random order"
drawn=0
while ((drawn < 9 * keys)); do
  load 5
  drawn=$((drawn + $(sets_done)))
  say "$drawn sets done, $((9 * keys)) are wanted"
done

pauses_before="$(gc_field pauses)"
say "overwriting for $overwrite_s s"
load "$overwrite_s"

python3 - "$work/load.json" "$(fetch /status)" "$(resident_kb VmRSS)" "$(resident_kb RssAnon)" "$(resident_kb VmHWM)" \
  "$pauses_before" "$keys" "$value_size" <<'PYTHON'
import json
import sys

load = json.load(open(sys.argv[1], encoding="utf-8"))["aggregate"]
gc = json.loads(sys.argv[2])["gc"]
rss, anonymous, peak, pauses_before, keys, value_size = map(int, sys.argv[3:9])
rss_mb = rss * 1024 / 1e6
during = gc["pauses"] - pauses_before
kept = gc["latestPausesMs"][-during:] if during > 0 else []
pause = max(kept, default=0.0)
print(f"keys                 {keys:>12,}   of {value_size} bytes each")
print(f"resident memory      {rss_mb:>12,.1f} MB   managed and native together")
print(f"  of it anonymous    {anonymous * 1024 / 1e6:>12,.1f} MB")
print(f"  highest so far     {peak * 1024 / 1e6:>12,.1f} MB")
print(f"managed heap         {gc['heapBytes'] / 1e6:>12,.1f} MB")
print(f"overwriting          {load['rps']:>12,.0f} sets/s, p99 {load['p99Ms']:.2f} ms, {load['errors'] + load['timeouts']} errors")
print(f"collector pauses     {during:>12,} while overwriting, {gc['pauses']:,} since the start")
print(f"longest pause        {pause:>12,.2f} ms while overwriting, {gc['longestPauseMs']:,.2f} ms since the start")
if during > len(kept):
    print(f"  (the latest {len(kept)} of them are known one by one)")
if keys == 1_000_000 and value_size == 128:
    print(f"floor: memory at most 350 MB          {'ok' if rss_mb <= 350 else 'missed'}")
    print(f"floor: longest pause at most 10 ms    {'ok' if pause <= 10 else 'missed'}")
PYTHON
