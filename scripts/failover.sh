#!/usr/bin/env bash
# How long a caller waits when the leader fails: three real processes, each in a network
# namespace of its own, and kahuna-bench with one worker in another.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/failover.sh [options]

  --faults LIST      of kill,pause,peers,isolated; default all of them
  --rounds N         how often each fault happens; default 20
  --durability NAME  persistent or ephemeral keys; default persistent
  --output FILE      writes every measured call there as JSON

kill      kill -9 of the leader
pause     SIGSTOP of the leader for 6 seconds
peers     the leader loses the other nodes for 6 seconds, and clients still reach it
isolated  the leader loses the other nodes and the clients for 6 seconds

A worker makes one call after the other, reads and writes. The longest call of each round counts: its median over
the rounds must be at most 1.5 s, and the worst at most 2.5 s. Prints a table with "ok" or "BELOW"; the exit code is 0
also when a floor is missed, and 1 when a call had no success or a fault did not reach the leader.

Needs root and iproute2. The namespaces have a network of their own, which the machine's does not see. All lies under
.kahuna/ and is removed; nothing stays running. A round takes about 20 seconds.
USAGE
}

faults=kill,pause,peers,isolated
rounds=20
durability=persistent
output=
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --faults | --rounds | --durability | --output)
      [[ $# -ge 2 ]] || bad_usage "$1 needs a value"
      declare "${1#--}=$2"
      shift 2
      ;;
    *) bad_usage "unknown option $1" ;;
  esac
done

for fault in ${faults//,/ }; do
  [[ "$fault" =~ ^(kill|pause|peers|isolated)$ ]] || bad_usage "--faults takes kill, pause, peers and isolated, not '$fault'"
done
[[ "$rounds" =~ ^[1-9][0-9]*$ ]] || bad_usage "--rounds needs a whole number from 1 on, it is '$rounds'"
[[ "$durability" =~ ^(persistent|ephemeral)$ ]] || bad_usage "--durability takes persistent or ephemeral, not '$durability'"
[[ "$(id -u)" -eq 0 ]] || die "network namespaces need root"

need_dotnet
need_package iproute2 ip -Version
need_package curl curl --version
need_package python3 python3 --version
build Kahuna.Server
build Kahuna.Benchmark
exec python3 "$KAHUNA_ROOT/scripts/failover.py" "$SERVER_DLL" "$BENCH_DLL" "$KAHUNA_ROOT/.kahuna/failover" "$faults" "$rounds" "$durability" "$output"
