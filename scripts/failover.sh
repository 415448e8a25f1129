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
.kahuna/ and is removed, except after exit code 1 before the table; nothing stays running. A round takes about 20
seconds.
USAGE
}

read_options "$@" <<'OPTIONS'
faults (kill|pause|peers|isolated)(,(kill|pause|peers|isolated))* names of kill, pause, peers and isolated
rounds [1-9][0-9]* a whole number from 1 on
durability persistent|ephemeral persistent or ephemeral
output FILE a file in a directory that exists
OPTIONS

[[ "$(id -u)" -eq 0 ]] || die "network namespaces need root"
need_package iproute2 ip -Version
need_package curl curl --version
measure
