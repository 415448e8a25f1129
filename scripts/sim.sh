#!/usr/bin/env bash
# Runs the deterministic simulator: the shipped code of a whole cluster on one thread, with every fault drawn from a seed.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/sim.sh [options]

  --seeds A..B     seeds to run; default 1..100
  --seed N         this one only
  --seconds S      virtual seconds of load and faults per seed; default 120
  --jobs J         seeds that run side by side; default: one per processor
  --hours H        goes on with further seeds until this time has passed
  --trace FILE     with --seed: writes all events there
  --violations N   ends when N seeds have broken a rule
  --minimize       at a violation: leaves out faults while it stays, and prints the shortest list
  --only N,N       with --seed: of its faults only these happen; "none": none of them
  --json FILE      writes the summary there
  --mutant NAME    builds a copy of the source with this planted bug, and runs that
  --list-mutants   prints the names of the planted bugs, one a line

Exit code 0: clean; 1: a rule was broken; 2: bad usage.
USAGE
}

mutant=
arguments=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --list-mutants)
      find "$MUTANTS_DIR" -name '*.mutant' -exec basename {} .mutant \; | sort
      exit 0
      ;;
    --mutant)
      [[ -f "$MUTANTS_DIR/${2:-}.mutant" ]] || bad_usage "there is no mutant ${2:-}; --list-mutants names them"
      mutant="$2"
      shift 2
      ;;
    --seeds)
      [[ "${2:-}" =~ ^([0-9]{1,15})\.\.([0-9]{1,15})$ ]] && ((10#${BASH_REMATCH[1]} <= 10#${BASH_REMATCH[2]})) || bad_usage "--seeds needs A..B with A not above B"
      arguments+=("$1" "$2")
      shift 2
      ;;
    *)
      arguments+=("$1")
      shift
      ;;
  esac
done

need_dotnet
build Kahuna.Tests
if [[ -z "$mutant" ]]; then
  run_tests_command sim "${arguments[@]}"
  exit
fi

work="$(make_work_dir)"
trap 'rm -rf "$work"' EXIT
status=0
run_tests_command mutants --run "$mutant" --work "$work" "${arguments[@]}" || status=$?
exit "$status"
