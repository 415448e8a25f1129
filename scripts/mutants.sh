#!/usr/bin/env bash
# Shows that the simulator finds planted bugs: builds each and counts the seeds until a rule is broken.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/mutants.sh [options] [NAME...]

  --tries N     how often each bug is looked for, each time with the seeds after those of the time before; default 1
  --most N      seeds after which a try gives up; default 2000
  --seconds S   virtual seconds per seed; default 60
  --from N      first seed of the first try; default 1
  --table FILE  appends one row of a Markdown table for each bug
  --some N      only N of those that take few seeds by the table in docs/simulation.md, others with every commit

Without names: all of scripts/sim.sh --list-mutants.
Exit code 0: every try found its bug; 1: some did not; 2: bad usage.
USAGE
}

arguments=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --tries | --most | --seconds | --from | --some)
      [[ "${2:-}" =~ ^[1-9][0-9]{0,8}$ ]] || bad_usage "$1 needs a whole number from 1 on"
      arguments+=("$1" "$2")
      shift 2
      ;;
    --table)
      [[ -n "${2:-}" && -d "$(dirname "${2:-}")" ]] || bad_usage "--table needs a file in a directory that exists"
      arguments+=("$1" "$2")
      shift 2
      ;;
    -*) bad_usage "unknown option $1" ;;
    *)
      [[ -f "$MUTANTS_DIR/$1.mutant" ]] || bad_usage "there is no mutant $1; scripts/sim.sh --list-mutants names them"
      arguments+=("$1")
      shift
      ;;
  esac
done

need_dotnet
build Kahuna.Tests
work="$(make_work_dir)"
trap 'rm -rf "$work"' EXIT
status=0
run_tests_command mutants --work "$work" "${arguments[@]}" || status=$?
exit "$status"
