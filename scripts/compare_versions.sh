#!/usr/bin/env bash
# This version of Kahuna and an earlier one on this machine, in turn, driven by the generator of this one.
# scripts/compare.sh --against runs it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[[ $# -ge 5 ]] || bad_usage "COMMIT ROUNDS SECONDS WARMUP JSON; scripts/compare.sh --against COMMIT gives them"
commit="$(git -C "$KAHUNA_ROOT" rev-parse --verify --quiet "$1^{commit}")" || bad_usage "there is no commit $1 in this clone"
rounds="$2" seconds="$3" warmup="$4" json="$5"
need_dotnet
need_package python3 python3 --version
need_package curl curl --version
need_package python3-grpcio /usr/bin/python3 -c 'import grpc'

work="$(make_work_dir)"
before="$work/before"
standalone_port=18491
authority="${KAHUNA_DEV_CERT_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/kahuna/dev-ca}/ca.pem"
export KAHUNA_CLUSTER_PORTS="18482 18484 18486"
pids=()
running=

stop_all() {
  local pid
  for pid in ${pids[@]+"${pids[@]}"}; do
    stop_process "$pid" 10 || true
    wait "$pid" 2>/dev/null || true
  done
  pids=()
  if [[ -n "$running" ]]; then
    KAHUNA_CLUSTER_DIR="$work/cluster" "$running/scripts/cluster.sh" clean 2>/dev/null || true
    running=
  fi
  rm -rf "$work/standalone"
}

finish() {
  local status=$?
  trap - EXIT
  stop_all
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "building $commit"
mkdir "$before"
git -C "$KAHUNA_ROOT" archive "$commit" | tar -x -C "$before"
dotnet build "$before/Kahuna.Server" -c Release --nologo -v q -p:RunAnalyzers=false >&2
build Kahuna.Benchmark
build Kahuna.Server
root_of() { [[ "$1" == now ]] && echo "$KAHUNA_ROOT" || echo "$before"; }

# bench VERSION WORKLOAD WORKERS [options of the generator]
bench() {
  local version="$1" workload="$2" workers="$3" file
  shift 3
  file="$work/results/$round-$version-$workload-$workers.json"
  run_bench -c "$endpoints" --workload "$workload" --concurrency "$workers" --duration "$seconds" --warmup "$warmup" --key-space 10000 --value-size 128 "$@" \
    --format json --output "$file" >"$work/bench.log" 2>&1 || { tail -n 20 "$work/bench.log" >&2; die "kahuna-bench --workload $workload --concurrency $workers failed"; }
}

cluster_points() {
  running="$(root_of "$1")"
  KAHUNA_CLUSTER_DIR="$work/cluster" "$running/scripts/cluster.sh" up 2>"$work/cluster.log" || { cat "$work/cluster.log" >&2; die "the cluster of version '$1' does not start"; }
  endpoints="https://127.0.0.1:18482,https://127.0.0.1:18484,https://127.0.0.1:18486"
  # A fresh process compiles its code while it serves its first seconds; that is nobody's measurement.
  run_bench -c "$endpoints" --workload mixed --concurrency 64 --duration 2 --key-space 10000 --value-size 128 >/dev/null 2>&1 || die "the cluster of version '$1' does not serve"
  local workload workers
  for workload in set get; do
    for workers in 1 64 256; do
      bench "$1" "$workload" "$workers"
    done
  done
  stop_all
}

# One node: how long it takes until it is ready, what memory it has then, a mixed load of ephemeral keys, and unary calls of a foreign client.
node_points() {
  local root began
  root="$(root_of "$1")"
  endpoints="https://127.0.0.1:$standalone_port"
  began="$(date +%s%N)"
  dotnet "$root/Kahuna.Server/bin/Release/net10.0/kahuna-server.dll" --listen "$endpoints" --data "$work/standalone" >"$work/standalone.log" 2>&1 </dev/null &
  local pid="$!"
  pids+=("$pid")
  until curl --silent --fail --insecure --max-time 2 "$endpoints/readyz" >/dev/null 2>&1; do
    (($(date +%s%N) - began < 60000000000)) || { tail -n 20 "$work/standalone.log" >&2; die "the node of version '$1' does not start"; }
    sleep 0.02
  done
  local ready_ms=$((($(date +%s%N) - began) / 1000000))
  sleep 5
  echo "{\"readyMs\": $ready_ms, \"memoryKb\": $(awk '/^VmRSS/ {print $2}' "/proc/$pid/status")}" >"$work/results/$round-$1-node.json"
  run_bench -c "$endpoints" --workload mixed --durability ephemeral --concurrency 64 --duration 2 --key-space 10000 --value-size 128 >/dev/null 2>&1 || die "the node of version '$1' does not serve"
  bench "$1" mixed 64 --durability ephemeral
  /usr/bin/python3 "$KAHUNA_ROOT/scripts/compare_unary.py" --endpoint "127.0.0.1:$standalone_port" --trusted "$authority" --callers 64 \
    --seconds "$seconds" --warmup "$warmup" --output "$work/results/$round-$1-unary-64.json" >"$work/unary.log" 2>&1 || { tail -n 20 "$work/unary.log" >&2; die "unary calls at version '$1' fail"; }
  stop_all
}

mkdir "$work/results"
for ((round = 1; round <= rounds; round++)); do
  versions=(now before)
  ((round % 2)) || versions=(before now)
  for version in "${versions[@]}"; do
    say "round $round of $rounds: $version"
    cluster_points "$version"
    node_points "$version"
  done
done

python3 "$KAHUNA_ROOT/scripts/compare_versions_report.py" --results "$work/results" --against "$commit" --filesystem "$(stat -f -c %T "$work")" \
  --seconds "$seconds" --warmup "$warmup" ${json:+--json "$json"}
