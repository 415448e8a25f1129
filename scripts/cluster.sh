#!/usr/bin/env bash
# A local cluster of three real server processes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/cluster.sh COMMAND

  up [server options]   builds, starts the nodes that do not run, waits until all are ready
  down                  stops all nodes (SIGTERM; what does not end in time is killed)
  status [--partitions] node, pid, role, term, commit index, ready; or the same per partition
  kill I                SIGKILL to node I
  start I [options]     starts node I again on its data; server options that are given here
                        follow those of 'up', for this once, as in: start 2 --rebuild --yes
  pause I               SIGSTOP to node I
  resume I              SIGCONT to node I
  logs I [-f]           the end of node I's log; -f follows it
  clean                 stops all nodes and removes their data, logs and certificates

The nodes are 1, 2 and 3, on https://127.0.0.1:8082, 8084 and 8086. Clients on this machine
need no certificate options (loopback implies --insecure); others use certificates/ca.pem.

Environment:
  KAHUNA_CLUSTER_DIR     data, logs, certificates and pids; default .kahuna/cluster in the clone
  KAHUNA_CLUSTER_PORTS   three ports for 'up', which the directory remembers; default "8082 8084 8086"
  KAHUNA_CLUSTER_TIMEOUT seconds that 'up' and 'start' wait for readiness; default 60
USAGE
}

directory="${KAHUNA_CLUSTER_DIR:-$KAHUNA_ROOT/.kahuna/cluster}"
timeout_s="${KAHUNA_CLUSTER_TIMEOUT:-60}"
[[ "$timeout_s" =~ ^[0-9]+$ ]] || die "KAHUNA_CLUSTER_TIMEOUT needs a number of seconds, it is '$timeout_s'"
[[ "$directory" == /* ]] || directory="$PWD/$directory"
nodes=(1 2 3)
ports=(8082 8084 8086)

# A cluster keeps the ports of its 'up' until the next one that finds all nodes down.
if [[ -s "$directory/ports" ]]; then
  read -r -a ports <"$directory/ports"
fi

port_of() { echo "${ports[$(($1 - 1))]}"; }
url_of() { echo "https://127.0.0.1:$(port_of "$1")"; }
data_of() { echo "$directory/node$1"; }
log_of() { echo "$directory/logs/node$1.log"; }
pid_file_of() { echo "$directory/pids/node$1.pid"; }

# The pid of a running node, or nothing. A stale pid file whose number now belongs to another
# program is not taken for the node.
pid_of() {
  local file pid
  file="$(pid_file_of "$1")"
  [[ -r "$file" ]] || return 0
  pid="$(cat "$file")"
  if [[ "$(command_of "$pid")" == *kahuna-server*"--data $(data_of "$1") "* ]] && ! process_gone "$pid"; then
    echo "$pid"
  fi
}

# fetch NODE PATH: the body of an answer with status 200. Where 'up' had a bootstrap file, its administrator asks.
fetch() {
  curl --silent --fail --max-time 2 --cacert "$directory/certificates/ca.pem" --config <(sign_in) \
    "$(url_of "$1")$2" 2>/dev/null
}

# A line for curl with the two lines of the bootstrap file; none without one.
sign_in() {
  local file lines=()
  [[ -r "$directory/options" ]] || return 0
  file="$(grep --line-regexp --after-context=1 -e --auth-bootstrap-file "$directory/options" | tail -n 1)"
  [[ -r "$file" ]] || return 0
  mapfile -t lines <"$file"
  printf 'user = "%s:%s"\n' "${lines[0]-}" "${lines[1]-}"
}

is_ready() { fetch "$1" /readyz >/dev/null; }
is_healthy() { fetch "$1" /healthz >/dev/null; }

healthy_or_dead() { is_healthy "$1" || [[ -z "$(pid_of "$1")" ]]; }

# One look is the answer: a node that is ready may be between two leaders at the next.
ready_or_dead() {
  was_ready=false
  if is_ready "$1"; then
    was_ready=true
  else
    [[ -z "$(pid_of "$1")" ]]
  fi
}

running_count() {
  local count=0 i
  for i in "${nodes[@]}"; do
    [[ -z "$(pid_of "$i")" ]] || count=$((count + 1))
  done
  echo "$count"
}

choose_ports() {
  read -r -a ports <<<"${KAHUNA_CLUSTER_PORTS:-8082 8084 8086}"
  [[ "${ports[*]}" =~ ^[0-9]+\ [0-9]+\ [0-9]+$ ]] || die "KAHUNA_CLUSTER_PORTS needs three ports, it is '${KAHUNA_CLUSTER_PORTS:-}'"
  echo "${ports[*]}" >"$directory/ports"
}

prepare_directory() {
  mkdir -p "$directory/logs" "$directory/pids"
  if [[ ! -e "$directory/certificates" ]]; then
    mkdir -m 700 "$directory/certificates"
  fi
  if [[ ! -s "$directory/secret" ]]; then
    (umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$directory/secret")
  fi
}

# launch NODE [SERVER OPTIONS]: starts the process in a session of its own, so that Ctrl+C in this
# terminal and the end of this script do not reach it.
launch() {
  local i="$1" peers="" j options=()
  shift
  # A process that was killed in the middle of a sync keeps its port until that has ended.
  if ! wait_until 3 port_free "$(port_of "$i")"; then
    say "node $i: port $(port_of "$i") is in use by another program"
    return 1
  fi
  for j in "${nodes[@]}"; do
    peers+="${peers:+,}$j=$(url_of "$j")"
  done
  if [[ -s "$directory/options" ]]; then
    mapfile -t options <"$directory/options"
  fi
  mkdir -p "$(data_of "$i")"
  # The data option stands before others: pid_of recognises the process by it.
  # Variables that are only for this script would be unknown options to the server.
  KAHUNA_DEV_CERT_DIR="$directory/certificates" setsid env -u KAHUNA_CLUSTER_PORTS -u KAHUNA_CLUSTER_TIMEOUT dotnet "$SERVER_DLL" \
    --node-id "$i" --data "$(data_of "$i")" --listen "$(url_of "$i")" --advertise "$(url_of "$i")" --peers "$peers" \
    --cluster-secret-file "$directory/secret" ${options[@]+"${options[@]}"} "$@" \
    >>"$(log_of "$i")" 2>&1 </dev/null &
  echo "$!" >"$(pid_file_of "$i")"
  disown
  # Until its last exec the process is this shell's copy, then setsid, then env. Between two of them it has no
  # command line for a moment, and pid_of would not take it for the node.
  wait_until "$timeout_s" began_or_ended "$!" || true
}

# Whether the process runs the server by now, after its last exec, or has ended.
began_or_ended() { [[ "$(command_of "$1")" == dotnet\ *kahuna-server*"--data "* ]] || process_gone "$1"; }

show_log_end() {
  say "node $1: the end of $(log_of "$1"):"
  tail -n 20 "$(log_of "$1")" >&2 || true
}

# await_ready NODE: 0 when it is ready, 1 with the reason otherwise.
await_ready() {
  local i="$1"
  if ! wait_until "$timeout_s" ready_or_dead "$i"; then
    say "node $i is not ready after $timeout_s s"
    show_log_end "$i"
    return 1
  fi
  # The wait also ends when the node seems to be dead. Only what it says itself makes it ready.
  if ! $was_ready && ! is_ready "$i"; then
    say "node $i $([[ -z "$(pid_of "$i")" ]] && echo "ended while it was starting" || echo "is not ready")"
    show_log_end "$i"
    return 1
  fi
}

cmd_up() {
  local i started=() failed=0
  prepare_directory
  if [[ "$(running_count)" -eq 0 ]]; then
    choose_ports
    build Kahuna.Server
    : >"$directory/options"
    [[ $# -eq 0 ]] || printf '%s\n' "$@" >"$directory/options"
  elif [[ $# -gt 0 ]]; then
    die "nodes are running; server options can be given only when all are down"
  fi
  # The first node alone makes the development CA; the others find it.
  for i in "${nodes[@]}"; do
    [[ -z "$(pid_of "$i")" ]] || continue
    say "starting node $i on $(url_of "$i")"
    if ! launch "$i"; then
      failed=1
      break
    fi
    started+=("$i")
    if [[ ! -e "$directory/certificates/ca.pem" ]] && ! wait_until "$timeout_s" healthy_or_dead "$i"; then
      say "node $i does not answer after $timeout_s s"
      show_log_end "$i"
      failed=1
      break
    fi
  done
  if [[ "$failed" -eq 0 ]]; then
    for i in "${nodes[@]}"; do
      await_ready "$i" || { failed=1; break; }
    done
  fi
  if [[ "$failed" -ne 0 ]]; then
    for i in ${started[@]+"${started[@]}"}; do
      stop_node "$i"
    done
    die "the cluster is not up; the nodes that this call had started are stopped again"
  fi
  say "all nodes are ready: $(url_of 1),$(url_of 2),$(url_of 3)"
}

stop_node() {
  local pid
  pid="$(pid_of "$1")"
  [[ -n "$pid" ]] || return 0
  stop_process "$pid" 20 || say "node $1 did not stop in time and was killed"
  rm -f "$(pid_file_of "$1")"
}

cmd_down() {
  local i
  for i in "${nodes[@]}"; do
    if [[ -n "$(pid_of "$i")" ]]; then
      say "stopping node $i"
      # A stopped process cannot act on SIGTERM, and the last nodes need no longer wait for the first.
      kill -CONT "$(pid_of "$i")" 2>/dev/null || true
    fi
  done
  for i in "${nodes[@]}"; do
    stop_node "$i"
  done
  say "all nodes are down"
}

require_running() {
  local pid
  pid="$(pid_of "$1")"
  [[ -n "$pid" ]] || die "node $1 is not running"
  echo "$pid"
}

cmd_kill() {
  local pid
  pid="$(require_running "$1")"
  kill -KILL "$pid"
  wait_until 5 process_gone "$pid" || die "node $1 (pid $pid) does not end"
  rm -f "$(pid_file_of "$1")"
  say "node $1 (pid $pid) is killed"
}

cmd_start() {
  local i="$1"
  shift
  [[ -z "$(pid_of "$i")" ]] || die "node $i is running already (pid $(pid_of "$i"))"
  [[ -s "$directory/secret" ]] || die "there is no cluster in $directory; run: scripts/cluster.sh up"
  [[ -e "$SERVER_DLL" ]] || build Kahuna.Server
  launch "$i" "$@" || exit 1
  if ! wait_until "$timeout_s" healthy_or_dead "$i" || ! is_healthy "$i"; then
    say "node $i did not start"
    show_log_end "$i"
    exit 1
  fi
  if [[ "$(running_count)" -lt 2 ]]; then
    say "node $i runs (pid $(pid_of "$i")); it becomes ready when a second node is there"
    return 0
  fi
  await_ready "$i" || exit 1
  say "node $i is ready (pid $(pid_of "$i"))"
}

cmd_pause() {
  local pid
  pid="$(require_running "$1")"
  kill -STOP "$pid"
  say "node $1 (pid $pid) is paused"
}

cmd_resume() {
  local pid
  pid="$(require_running "$1")"
  kill -CONT "$pid"
  say "node $1 (pid $pid) goes on"
}

cmd_logs() {
  local i="$1" follow="${2:-}"
  [[ -e "$(log_of "$i")" ]] || die "node $i has no log in $directory/logs"
  if [[ "$follow" == -f ]]; then
    exec tail -n 100 -f "$(log_of "$i")"
  fi
  tail -n 200 "$(log_of "$i")"
}

cmd_status() {
  local i pid state
  for i in "${nodes[@]}"; do
    pid="$(pid_of "$i")"
    if [[ -z "$pid" ]]; then
      printf '%s\t-\tdown\t\n' "$i"
      continue
    fi
    state=running
    [[ "$(process_state "$pid")" != T ]] || state=paused
    printf '%s\t%s\t%s\t%s\n' "$i" "$pid" "$state" "$([[ "$state" == paused ]] || fetch "$i" /status | tr -d '\n' || true)"
  done | status_table "$@"
}

# status_table [--partitions]: a table from lines of node, pid, process state and GET /status, with tabs between.
status_table() {
  awk -F'\t' -v each="${1:-}" '
    function field(text, name) {
      if (!match(text, "\"" name "\" *: *\"?[^\",}]*")) return ""
      text = substr(text, RSTART, RLENGTH)
      sub(/^[^:]*: *"?/, "", text)
      return text
    }
    function put(slot, role, term, commit, ready, state, node, pid,   cells, i) {
      rows[++count] = node FS pid FS (each ? slot FS : "") role FS term FS commit FS ready FS state
      for (i = split(rows[count], cells); i > 0; i--) if (length(cells[i]) > widths[i]) widths[i] = length(cells[i])
    }
    BEGIN { put("PARTITION", "ROLE", "TERM", "COMMIT", "READY", "STATE", "NODE", "PID") }
    {
      leads = groups = highest = sum = 0
      ready = field($4, "ready") == "true" ? "yes" : "no"
      parts = split(substr($4, 1, index($4, "\"ephemeralPartitions\"")), objects, "{")
      for (i = 1; i <= parts; i++) {
        if ((slot = field(objects[i], "partition")) == "") continue
        role = field(objects[i], "role")
        term = field(objects[i], "term")
        commit = field(objects[i], "commitIndex")
        common = ++groups == 1 || common == role ? role : "mixed"
        leads += role == "leader"
        if (term + 0 > highest) highest = term + 0
        sum += commit
        if (each) put(slot, role, term, commit, ready, $3, $1, $2)
      }
      if (leads > 0 && leads < groups) common = "leader " leads "/" groups
      if (groups == 0) put("-", "-", "-", "-", "no", $3, $1, $2)
      else if (!each) put("", common, highest, sprintf("%.0f", sum), ready, $3, $1, $2)
    }
    END {
      for (n = 1; n <= count; n++) {
        line = ""
        cells_count = split(rows[n], cells)
        for (i = 1; i <= cells_count; i++) line = line sprintf("%-" (widths[i] + 2) "s", cells[i])
        sub(/ +$/, "", line)
        print line
      }
    }'
}

cmd_clean() {
  local i
  cmd_down
  for i in "${nodes[@]}"; do
    rm -rf "$(data_of "$i")"
  done
  rm -rf "$directory/logs" "$directory/pids" "$directory/certificates" "$directory/secret" "$directory/options" "$directory/ports"
  rmdir "$directory" 2>/dev/null || true
  say "removed what was in $directory"
}

require_node() {
  [[ $# -ge 1 && "$1" =~ ^[123]$ ]] || bad_usage "$command needs a node: 1, 2 or 3"
}

[[ $# -ge 1 ]] || bad_usage "which command?"
command="$1"
shift
case "$command" in
  -h | --help)
    usage
    exit 0
    ;;
  up)
    need_dotnet
    need_package curl curl --version
    cmd_up "$@"
    ;;
  down | clean)
    [[ $# -eq 0 ]] || bad_usage "$command takes no arguments"
    "cmd_$command"
    ;;
  status)
    [[ $# -eq 0 || "$*" == --partitions ]] || bad_usage "status takes only --partitions"
    need_package curl curl --version
    cmd_status "$@"
    ;;
  kill | pause | resume)
    require_node "$@"
    [[ $# -eq 1 ]] || bad_usage "$command takes one node"
    "cmd_$command" "$1"
    ;;
  start)
    require_node "$@"
    [[ $# -eq 1 || "$2" == -* ]] || bad_usage "start takes one node and then server options"
    need_package curl curl --version
    cmd_start "$@"
    ;;
  logs)
    require_node "$@"
    [[ $# -eq 1 || ($# -eq 2 && "$2" == -f) ]] || bad_usage "logs takes a node and perhaps -f"
    cmd_logs "$@"
    ;;
  *) bad_usage "unknown command $command" ;;
esac
