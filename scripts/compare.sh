#!/usr/bin/env bash
# Kahuna, etcd and Redis on this machine, one after the other and several times in turn, all
# driven by the same load generator.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/compare.sh [options]

  --rounds N       how often the systems take turns; default 3
  --seconds S      measured seconds per point; default 2
  --warmup S       seconds of load before each point; default 1
  --workers LIST   default 1,64,256,1024
  --workloads LIST default set,get
  --only LIST      of kahuna,etcd,redis; default all
  --json FILE      writes medians, spread and ratios there as well
  --against COMMIT compares with that version of Kahuna instead: builds both and takes turns; --rounds, --seconds, --warmup and --json count

Kahuna: three processes, TLS and fsync on; "kahuna_ephemeral" is the same cluster with ephemeral
keys and locks, its workload sequence takes values from one sequence, lock acquires and releases
one of 10,000 locks, and handover gives one lock to the next of 1,000 that wait; "kahuna_standalone" is one process
under a mixed load of ephemeral keys at 64 workers. etcd: three processes, its defaults, no TLS. Redis:
one process, appendfsync always, no TLS; "redis" has a connection per worker, as redis-benchmark
and as many application processes have, "redis_pipelined" lets 128 workers share one. Keys bench:N
of 10,000, values of 128 bytes. The data of all three lies in one directory under .kahuna/, on the
disk of this clone.
With the defaults it takes about a quarter of an hour and leaves nothing running.
USAGE
}

rounds=3
seconds=2
warmup=1
workers=1,64,256,1024
workloads=set,get
systems=kahuna,etcd,redis
json=
against=
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --rounds | --seconds | --warmup)
      [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || bad_usage "$1 needs a whole number from 1 on"
      printf -v "${1#--}" '%s' "$2"
      ;;
    --workers)
      [[ "${2:-}" =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || bad_usage "--workers needs numbers with commas between"
      workers="$2"
      ;;
    --workloads)
      [[ "${2:-}" =~ ^(set|get|mixed)(,(set|get|mixed))*$ ]] || bad_usage "--workloads needs names of set, get, mixed"
      workloads="$2"
      ;;
    --only)
      [[ "${2:-}" =~ ^(kahuna|etcd|redis)(,(kahuna|etcd|redis))*$ ]] || bad_usage "--only needs names of kahuna, etcd, redis"
      systems="$2"
      ;;
    --against)
      [[ -n "${2:-}" ]] || bad_usage "--against needs a commit"
      against="$2"
      ;;
    --json)
      [[ -n "${2:-}" ]] || bad_usage "--json needs a file"
      json="$2"
      ;;
    *) bad_usage "unknown option $1" ;;
  esac
  shift 2
done
[[ -z "$against" ]] || exec "$KAHUNA_ROOT/scripts/compare_versions.sh" "$against" "$rounds" "$seconds" "$warmup" "$json"
IFS=, read -r -a worker_list <<<"$workers"
IFS=, read -r -a workload_list <<<"$workloads"
IFS=, read -r -a system_list <<<"$systems"

need_dotnet
need_package python3 python3 --version
need_package curl curl --version
for system in "${system_list[@]}"; do
  case "$system" in
    etcd) need_package etcd-server etcd --version ;;
    redis) need_package redis-server redis-server --version ;;
  esac
done
build Kahuna.Benchmark
build Kahuna.Server

# Ports of our own, so that a cluster or a system service that is running stays untouched. They
# lie below the range from which connections take their own ports.
kahuna_ports="18482 18484 18486"
etcd_client_ports=(18581 18583 18585)
etcd_peer_ports=(18582 18584 18586)
redis_port=18681
standalone_port=18491
# Nodes and generator share the machine: the client's timeout is no part of the measurement.
work="$(make_work_dir)"
export KAHUNA_CLUSTER_DIR="$work/kahuna" KAHUNA_CLUSTER_PORTS="$kahuna_ports"
pids=()

stop_all() {
  local pid
  for pid in ${pids[@]+"${pids[@]}"}; do
    stop_process "$pid" 10 || true
    # The shell's word about a killed child is no news here.
    wait "$pid" 2>/dev/null || true
  done
  pids=()
  if [[ -d "$KAHUNA_CLUSTER_DIR" ]]; then
    "$KAHUNA_ROOT/scripts/cluster.sh" clean 2>/dev/null || true
  fi
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

etcd_answers() {
  curl --silent --fail --max-time 2 "http://127.0.0.1:$1/health" 2>/dev/null | grep -q '"health":"true"'
}

start_kahuna() {
  "$KAHUNA_ROOT/scripts/cluster.sh" up 2>"$work/kahuna.log" || { cat "$work/kahuna.log" >&2; die "the Kahuna cluster does not start"; }
  read -r -a ports <<<"$kahuna_ports"
  endpoints="https://127.0.0.1:${ports[0]},https://127.0.0.1:${ports[1]},https://127.0.0.1:${ports[2]}"
}

start_standalone() {
  "$KAHUNA_ROOT/scripts/node.sh" --listen "https://127.0.0.1:$standalone_port" --data "$work/standalone" >"$work/standalone.log" 2>&1 </dev/null &
  pids+=("$!")
  endpoints="https://127.0.0.1:$standalone_port"
  wait_until 60 standalone_ready || { tail -n 20 "$work/standalone.log" >&2; die "the standalone node does not start"; }
}

standalone_ready() {
  curl --silent --fail --insecure --max-time 2 "$endpoints/readyz" >/dev/null 2>&1
}

start_etcd() {
  local i cluster="" client peer
  endpoints=
  for i in 0 1 2; do
    if port_in_use "${etcd_client_ports[$i]}" || port_in_use "${etcd_peer_ports[$i]}"; then
      die "port ${etcd_client_ports[$i]} or ${etcd_peer_ports[$i]} is in use; etcd needs it"
    fi
    cluster+="${cluster:+,}n$i=http://127.0.0.1:${etcd_peer_ports[$i]}"
    endpoints+="${endpoints:+,}http://127.0.0.1:${etcd_client_ports[$i]}"
  done
  for i in 0 1 2; do
    client="http://127.0.0.1:${etcd_client_ports[$i]}"
    peer="http://127.0.0.1:${etcd_peer_ports[$i]}"
    etcd --name "n$i" --data-dir "$work/etcd/n$i" --listen-client-urls "$client" --advertise-client-urls "$client" \
      --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "$cluster" \
      --initial-cluster-state new --log-level error >"$work/etcd$i.log" 2>&1 </dev/null &
    pids+=("$!")
  done
  for i in 0 1 2; do
    wait_until 30 etcd_answers "${etcd_client_ports[$i]}" || { tail -n 20 "$work/etcd$i.log" >&2; die "etcd does not start"; }
  done
}

start_redis() {
  port_in_use "$redis_port" && die "port $redis_port is in use; Redis needs it"
  mkdir -p "$work/redis"
  redis-server --bind 127.0.0.1 --port "$redis_port" --dir "$work/redis" --appendonly yes --appendfsync always --save '' \
    >"$work/redis.log" 2>&1 </dev/null &
  pids+=("$!")
  wait_until 30 port_in_use "$redis_port" || { tail -n 20 "$work/redis.log" >&2; die "Redis does not start"; }
  endpoints="127.0.0.1:$redis_port"
}

# run_point SYSTEM WORKLOAD WORKERS SECONDS FILE
run_point() {
  local errors="$work/bench.log" target="${1%%_*}" further=()
  case "$1" in
    redis) further=(--connections "$3") ;;
    kahuna_ephemeral | kahuna_standalone) further=(--durability ephemeral) ;;
  esac
  run_bench --target "$target" ${further[@]+"${further[@]}"} -c "$endpoints" --workload "$2" --concurrency "$3" --duration "$4" --warmup "$warmup" \
    --key-space 10000 --value-size 128 --format json --output "$5" >"$errors" 2>&1 ||
    { tail -n 20 "$errors" >&2; die "kahuna-bench --target $1 --workload $2 --concurrency $3 failed"; }
}

# measure SYSTEM: the present round, workload and number of workers.
measure() {
  local file="$work/results/$round-$1-$workload-$worker_count.json"
  run_point "$1" "$workload" "$worker_count" "$seconds" "$file"
  python3 "$KAHUNA_ROOT/scripts/compare_report.py" --one "$file" "$round" "$1" "$workload" "$worker_count" >&2
}

# measure_others: what is judged by a set of the same number of workers, right after it, because machines change their speed.
measure_others() {
  local workload
  workload=sequence
  measure kahuna
  workload=lock
  measure kahuna
  measure kahuna_ephemeral
}

mkdir "$work/results"
printf '%-6s %-15s %-9s %8s %12s %10s\n' round system workload workers 'req/s' 'p99 ms' >&2
for ((round = 1; round <= rounds; round++)); do
  for ((turn = 0; turn < ${#system_list[@]}; turn++)); do
    # Each round begins with another system, so that none always runs first on a cold machine.
    system="${system_list[$(((turn + round - 1) % ${#system_list[@]}))]}"
    rm -rf "$work/etcd" "$work/redis"
    "start_$system"
    # A fresh process compiles its code while it serves its first seconds; that is nobody's measurement.
    run_point "$system" set 64 2 "$work/heat.json"
    for workload in "${workload_list[@]}"; do
      for worker_count in "${worker_list[@]}"; do
        measure "$system"
        [[ "$system" == kahuna ]] && measure kahuna_ephemeral
        [[ "$system" == kahuna && "$workload" == set ]] && measure_others
        # With one worker there is nothing to share a connection with.
        [[ "$system" == redis && "$worker_count" -gt 1 ]] && measure redis_pipelined
      done
    done
    if [[ "$system" == kahuna ]]; then
      if [[ ! ",$workloads," == *,set,* ]]; then
        for worker_count in "${worker_list[@]}"; do
          measure_others
        done
      fi
      workload=handover worker_count=1000
      measure kahuna
      workload=set worker_count=1
      measure kahuna
      stop_all
      rm -rf "$work/standalone"
      start_standalone
      workload=mixed worker_count=64
      run_point kahuna_standalone mixed 64 2 "$work/heat.json"
      measure kahuna_standalone
    fi
    stop_all
  done
done

filesystem="$(stat -f -c %T "$work")"
say "took $SECONDS s"
python3 "$KAHUNA_ROOT/scripts/compare_report.py" --results "$work/results" --filesystem "$filesystem" \
  --seconds "$seconds" --warmup "$warmup" ${json:+--json "$json"}
