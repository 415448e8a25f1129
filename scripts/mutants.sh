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

Without names: all of scripts/sim.sh --list-mutants. Exit code 0: every try found its bug; 1: some did not; 2: bad usage.
USAGE
}

tries=1
most=2000
seconds=60
from=1
table=
some=0
names=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --tries | --most | --seconds | --from | --some)
      [[ "${2:-}" =~ ^[1-9][0-9]{0,8}$ ]] || bad_usage "$1 needs a whole number from 1 on"
      printf -v "${1#--}" '%s' "$2"
      shift 2
      ;;
    --table)
      [[ -n "${2:-}" && -d "$(dirname "${2:-}")" ]] || bad_usage "--table needs a file in a directory that exists"
      table="$2"
      shift 2
      ;;
    -*) bad_usage "unknown option $1" ;;
    *)
      [[ -f "$MUTANTS_DIR/$1.patch" ]] || bad_usage "there is no mutant $1; scripts/sim.sh --list-mutants names them"
      names+=("$1")
      shift
      ;;
  esac
done

need_dotnet
need_package python3 python3 --version
build Kahuna.Tests
[[ ${#names[@]} -gt 0 ]] || mapfile -t names < <(list_mutants)
if [[ "$some" -gt 0 ]]; then
  mapfile -t names < <(awk -F'|' 'NF == 7 && $5 ~ /^ [0-9]+ $/ && $5 <= 40 { gsub(/ /, "", $2); print $2 }' "$KAHUNA_ROOT/docs/simulation.md")
  [[ ${#names[@]} -gt 0 ]] || die "docs/simulation.md has no table of planted bugs"
  commits="$(git -C "$KAHUNA_ROOT" rev-list --count HEAD 2>/dev/null || date +%j)"
  chosen=()
  for ((i = 0; i < some; i++)); do
    chosen+=("${names[$(((10#$commits * some + i) % ${#names[@]}))]}")
  done
  names=("${chosen[@]}")
fi
work="$(make_work_dir)"
trap 'rm -rf "$work"' EXIT

# Prints "seeds rule" for each try that found its bug: tries follow one another, each begins with the seed after the one that
# ended the try before. Stops at a try that gives up. Most runs are short, so code is compiled once and not by tiers.
look() {
  local first="$from" left="$tries"
  while [[ "$left" -gt 0 ]]; do
    rm -f "$work/found.json"
    DOTNET_TieredCompilation=0 dotnet "$work/bin/Kahuna.Tests.dll" sim --seeds "$first..$((first + most - 1))" --seconds "$seconds" --violations "$left" --json "$work/found.json" >"$work/sim.log" 2>&1 || true
    python3 - "$work/found.json" "$first" "$left" <<'PYTHON' >"$work/found.txt"
import json
import sys

at, left = int(sys.argv[2]), int(sys.argv[3])
for violation in json.load(open(sys.argv[1], encoding="utf-8"))["violations"][:left]:
    print(violation["seed"] - at + 1, violation["rule"])
    at = violation["seed"] + 1
PYTHON
    [[ -s "$work/found.txt" ]] || return 0
    cat "$work/found.txt"
    left=$((left - $(wc -l <"$work/found.txt")))
    first=$((first + $(awk '{ sum += $1 } END { print sum }' "$work/found.txt")))
  done
}

missed=0
for name in "${names[@]}"; do
  build_mutant "$name" "$work"
  look >"$work/tries.txt"
  row="$(python3 - "$name" "$tries" "$work/tries.txt" <<'PYTHON'
import collections
import statistics
import sys

name, tries = sys.argv[1], int(sys.argv[2])
found = [line.rstrip("\n").split(" ", 1) for line in open(sys.argv[3], encoding="utf-8")]
counts = [int(count) for count, _ in found]
rule = ", ".join(rule for rule, _ in collections.Counter(rule for _, rule in found).most_common(2)) or "**not found**"
middle = f"{statistics.median(counts):.0f}" if counts else "-"
worst = str(max(counts)) if len(counts) == tries else "**not found**"
print(f"| {name} | {rule} | {middle} | {worst} | {tries} |")
PYTHON
)"
  echo "$row"
  [[ -z "$table" ]] || echo "$row" >>"$table"
  [[ "$row" != *"not found"* ]] || missed=$((missed + 1))
done
[[ "$missed" -eq 0 ]] || { say "$missed of ${#names[@]} were not found in every try"; exit 1; }
