# shellcheck shell=bash
# Functions that the scripts of this folder share; sourced, never run. Messages go to
# standard error, so that a script's standard output is only what it was asked for.

KAHUNA_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
SCRIPT_NAME="$(basename "$0")"
SERVER_DLL="$KAHUNA_ROOT/Kahuna.Server/bin/Release/net10.0/kahuna-server.dll"
BENCH_DLL="$KAHUNA_ROOT/Kahuna.Benchmark/bin/Release/net10.0/kahuna-bench.dll"
TESTS_DLL="${KAHUNA_TESTS_DLL:-$KAHUNA_ROOT/Kahuna.Tests/bin/Release/net10.0/Kahuna.Tests.dll}"

# No compiler or build server may outlive a script.
export MSBUILDDISABLENODEREUSE=1 UseSharedCompilation=false DOTNET_CLI_USE_MSBUILD_SERVER=0
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_SKIP_FIRST_TIME_EXPERIENCE=1

say() {
  printf '%s: %s\n' "$SCRIPT_NAME" "$*" >&2
}

# Ends the script with exit code 1 and the reason.
die() {
  say "$*"
  exit 1
}

# Ends the script with exit code 2, the reason and the usage text of the script.
bad_usage() {
  say "$*"
  usage >&2
  exit 2
}

# read_options "$@", with one line for each option on standard input: NAME PATTERN WHAT. PATTERN is a regular expression
# of the whole value, or FILE for a name in a directory that exists; WHAT says in an error what the option needs. A line
# with the name "-" allows operands. Sets a variable for each option, and the arrays arguments (options and values as
# given) and operands. --help prints the usage and ends the script.
read_options() {
  local option name pattern what
  local -A patterns=() wants=()
  while read -r name pattern what; do
    patterns[$name]="$pattern" wants[$name]="$what"
  done
  arguments=() operands=()
  while [[ $# -gt 0 ]]; do
    option="$1"
    [[ "$option" != -h && "$option" != --help ]] || { usage; exit 0; }
    if [[ "$option" != -* && -n "${patterns[-]:-}" ]]; then
      fits "$option" "${patterns[-]}" || bad_usage "'$option': ${wants[-]}"
      operands+=("$option")
      shift
      continue
    fi
    name="${option#--}"
    [[ "$option" == --?* && -n "${patterns[$name]:-}" ]] || bad_usage "unknown option $option"
    fits "${2:-}" "${patterns[$name]}" || bad_usage "$option needs ${wants[$name]}"
    printf -v "${name//-/_}" '%s' "$2"
    arguments+=("$option" "$2")
    shift 2
  done
}

# fits VALUE PATTERN: as read_options describes it.
fits() {
  if [[ "$2" == FILE ]]; then
    [[ -n "$1" && ! -d "$1" && -d "$(dirname "$1")" ]]
  else
    [[ "$1" =~ ^($2)$ ]]
  fi
}

# A measuring program of the test project, with what read_options has read; it cleans up by itself.
measure() {
  need_dotnet
  build Kahuna.Tests
  build Kahuna.Benchmark
  build Kahuna.Server
  exec dotnet "$TESTS_DLL" measure "${SCRIPT_NAME%.sh}" ${arguments[@]+"${arguments[@]}"}
}

# check_files FILE...: runs the command of the test project that a check-*.sh is named after on these files, with what
# read_options has read. Exit code 1 is its verdict, so nothing else may end with it.
check_files() {
  local file status=0
  for file in "$@"; do
    [[ -r "$file" && ! -d "$file" ]] || { say "cannot read $file"; exit 2; }
  done
  [[ -n "${KAHUNA_TESTS_DLL:-}" ]] || (build Kahuna.Tests) || exit 2
  [[ -r "$TESTS_DLL" ]] || { say "there is no $TESTS_DLL"; exit 2; }
  run_tests_command "${SCRIPT_NAME%.sh}" "$@" ${arguments[@]+"${arguments[@]}"} || status=$?
  ((status <= 2)) || { say "the checker broke off with exit code $status"; exit 2; }
  exit "$status"
}

need_dotnet() {
  command -v dotnet >/dev/null || die "the .NET 10 SDK is needed: https://dotnet.microsoft.com/download"
}

# need_package PACKAGE PROBE...: when the probe command fails, installs the Debian package
# if this is root, and otherwise says what to install.
need_package() {
  local package="$1"
  shift
  if "$@" >/dev/null 2>&1; then
    return 0
  fi
  if [[ "$(id -u)" -ne 0 ]] || ! command -v apt-get >/dev/null; then
    die "missing: Debian package $package (install it as root: apt-get install $package)"
  fi
  say "installing the Debian package $package"
  install_quietly "$package"
  "$@" >/dev/null 2>&1 || die "the package $package is installed, but this still fails: $*"
}

# Installs a package without letting it start a service: policy-rc.d says no to every start
# during the installation, and an enabled unit is disabled again.
install_quietly() {
  local package="$1" policy=/usr/sbin/policy-rc.d own_policy=0 status=0 out
  out="$(mktemp)"
  if [[ ! -e "$policy" ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    own_policy=1
  fi
  {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" ||
      { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package"; }
  } >"$out" 2>&1 || status=$?
  if [[ "$own_policy" -eq 1 ]]; then
    rm -f "$policy"
  fi
  if [[ "$status" -ne 0 ]]; then
    tail -n 20 "$out" >&2
    rm -f "$out"
    die "could not install the Debian package $package"
  fi
  rm -f "$out"
  if [[ -d /run/systemd/system && "$package" == *-server ]]; then
    systemctl disable --now "$package" "${package%-server}" >/dev/null 2>&1 || true
  fi
}

# The packages of the tests' gRPC client for Node, as its lock file names them. Nothing to do while the last installation
# is newer than that file.
install_node_packages() {
  local folder="$KAHUNA_ROOT/Kahuna.Tests/Api/Grpc/Foreign/node" out
  if [[ "$folder/node_modules/.package-lock.json" -nt "$folder/package-lock.json" ]]; then
    return 0
  fi
  out="$(mktemp)"
  if ! npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund >"$out" 2>&1; then
    tail -n 20 "$out" >&2
    rm -f "$out"
    die "npm ci --ignore-scripts in $folder fails"
  fi
  rm -f "$out"
}

# build PROJECT: builds it in Release unless nothing changed since the last build by a script.
# A rebuild under a running node would replace its files, so unchanged sources build nothing.
build() {
  local project="$1" stamp out
  stamp="$KAHUNA_ROOT/$project/obj/built-by-script"
  if [[ -e "$stamp" ]] && ! sources_newer_than "$stamp" "$project"; then
    return 0
  fi
  need_dotnet
  say "building $project (Release)"
  out="$(mktemp)"
  # The stamp carries the time before the build: a file saved during it counts as changed.
  mkdir -p "$KAHUNA_ROOT/$project/obj"
  touch "$stamp.next"
  if ! dotnet build "$KAHUNA_ROOT/$project" -c Release --nologo -v q -p:RestoreLockedMode=true >"$out" 2>&1; then
    rm -f "$stamp.next"
    grep -E 'error|warning' "$out" | sort -u >&2 || cat "$out" >&2
    rm -f "$out"
    die "$project does not build"
  fi
  rm -f "$out"
  mv "$stamp.next" "$stamp"
}

# For a build of everything that is not by build: what build would make is there afterwards.
begin_stamps() {
  local project
  for project in Kahuna.Client Kahuna.Server Kahuna.Benchmark Kahuna.Cli Kahuna.Tests; do
    mkdir -p "$KAHUNA_ROOT/$project/obj"
    touch "$KAHUNA_ROOT/$project/obj/built-by-script.next"
  done
}

end_stamps() {
  local project
  for project in Kahuna.Client Kahuna.Server Kahuna.Benchmark Kahuna.Cli Kahuna.Tests; do
    mv "$KAHUNA_ROOT/$project/obj/built-by-script.next" "$KAHUNA_ROOT/$project/obj/built-by-script"
  done
}

# sources_newer_than STAMP PROJECT: something changed that the project is built from. A directory
# counts too (a file was removed), but not the projects' own: bin/ and obj/ appear there.
sources_newer_than() {
  local stamp="$1" found
  local sources=("$KAHUNA_ROOT"/Kahuna.Client "$KAHUNA_ROOT"/Kahuna.Server "$KAHUNA_ROOT"/Kahuna.Benchmark)
  if [[ "$2" == Kahuna.Tests ]]; then
    sources+=("$KAHUNA_ROOT"/Kahuna.Cli "$KAHUNA_ROOT"/Kahuna.Tests)
  fi
  found="$(find "${sources[@]}" "$KAHUNA_ROOT"/Directory.Build.props "$KAHUNA_ROOT"/Directory.Packages.props "$KAHUNA_ROOT"/global.json \
    \( -name bin -o -name obj -o -name nupkg -o -name node_modules \) -prune -o ! -name 'Kahuna.Client' ! -name 'Kahuna.Server' ! -name 'Kahuna.Benchmark' ! -name 'Kahuna.Cli' ! -name 'Wire' ! -name 'Micro' ! -name 'Kahuna.Tests' \
    -newer "$stamp" -print -quit)"
  [[ -n "$found" ]]
}

# Runs kahuna-server, kahuna-bench or a command of the test project as built above.
run_server() {
  dotnet "$SERVER_DLL" "$@"
}

run_bench() {
  dotnet "$BENCH_DLL" "$@"
}

run_tests_command() {
  dotnet "$TESTS_DLL" "$@"
}

# Makes and prints a new directory under .kahuna/, on the disk of the clone (where /tmp lives in
# memory, a sync there costs nothing and measures nothing).
make_work_dir() {
  mkdir -p "$KAHUNA_ROOT/.kahuna"
  mktemp -d "$KAHUNA_ROOT/.kahuna/${SCRIPT_NAME%.sh}.XXXXXX"
}

# port_in_use PORT: something accepts connections there.
port_in_use() {
  (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

port_free() {
  ! port_in_use "$1"
}

# wait_until SECONDS COMMAND...: runs the command until it succeeds; 1 when the time is over.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    if ((SECONDS >= deadline)); then
      return 1
    fi
    sleep 0.1
  done
}

# The command line of a process, empty when it does not exist.
command_of() {
  if [[ -r "/proc/$1/cmdline" ]]; then
    tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" || true
  else
    ps -o args= -p "$1" 2>/dev/null || true
  fi
}

# stop_process PID SECONDS: SIGTERM, then SIGKILL when it has not ended in time. 1 when it had to be killed.
stop_process() {
  local pid="$1" seconds="$2"
  kill -CONT "$pid" 2>/dev/null || true
  kill -TERM "$pid" 2>/dev/null || return 0
  if wait_until "$seconds" process_gone "$pid"; then
    return 0
  fi
  kill -KILL "$pid" 2>/dev/null || true
  wait_until 5 process_gone "$pid" || true
  return 1
}

# A zombie whose parent is this shell counts as gone.
process_gone() {
  local state
  kill -0 "$1" 2>/dev/null || return 0
  state="$(process_state "$1")"
  [[ "$state" == Z || -z "$state" ]]
}

process_state() {
  if [[ -r "/proc/$1/status" ]]; then
    sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null || true
  else
    ps -o state= -p "$1" 2>/dev/null | cut -c1 || true
  fi
}

# The planted bugs: one file each.
MUTANTS_DIR="$KAHUNA_ROOT/Kahuna.Tests/Simulation/Mutants"
