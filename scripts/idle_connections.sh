#!/usr/bin/env bash
# Opens TLS connections to a node of this machine and leaves them idle: what each costs the node.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/idle_connections.sh PORT CONNECTIONS PID

PORT and PID are the node's. "ulimit -n" must be above CONNECTIONS for both.
USAGE
}

read_options "$@" <<'OPTIONS'
- [1-9][0-9]{0,8} a port, a number of connections and a process are needed
OPTIONS
[[ ${#operands[@]} -eq 3 ]] || bad_usage "a port, a number of connections and a process are needed"
arguments=(--port "${operands[0]}" --connections "${operands[1]}" --pid "${operands[2]}")
measure
