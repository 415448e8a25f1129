#!/usr/bin/env bash
# Shows that the simulator finds planted bugs: builds each and counts the seeds until a rule is broken.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/mutants.sh [options] [NAME...]

  --tries N     how often each bug is looked for, each time with other seeds; default 1
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
  mapfile -t names < <(awk -F'|' 'NF == 7 && $5 ~ /^ [0-9]+ $/ && $5 <= 100 { gsub(/ /, "", $2); print $2 }' "$KAHUNA_ROOT/docs/simulation.md")
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

# Prints "seeds rule" of one try; "- " when nothing was found.
try() {
  local first="$1" last=$(($1 + most - 1))
  dotnet "$work/bin/Kahuna.Tests.dll" sim --seeds "$first..$last" --seconds "$seconds" --stop --json "$work/found.json" >"$work/sim.log" 2>&1 || true
  python3 - "$work/found.json" "$first" <<'PYTHON'
import json
import sys

found = json.load(open(sys.argv[1], encoding="utf-8"))["violations"]
print(f"{found[0]['seed'] - int(sys.argv[2]) + 1} {found[0]['rule']}" if found else "- ")
PYTHON
}

missed=0
for name in "${names[@]}"; do
  build_mutant "$name" "$work"
  counts=()
  rules=()
  for ((t = 0; t < tries; t++)); do
    read -r count rule < <(try $((from + t * most)))
    counts+=("$count")
    rules+=("$rule")
  done
  row="$(python3 - "$name" "${counts[@]}" -- "${rules[@]}" <<'PYTHON'
import collections
import statistics
import sys

name, rest = sys.argv[1], sys.argv[2:]
cut = rest.index("--")
counts, rules = rest[:cut], [rule for rule in rest[cut + 1:] if rule]
found = [int(count) for count in counts if count != "-"]
rule = ", ".join(rule for rule, _ in collections.Counter(rules).most_common(2)) or "**not found**"
middle = f"{statistics.median(found):.0f}" if found else "-"
worst = str(max(found)) if len(found) == len(counts) else "**not found**"
print(f"| {name} | {rule} | {middle} | {worst} | {len(counts)} |")
PYTHON
)"
  echo "$row"
  [[ -z "$table" ]] || echo "$row" >>"$table"
  [[ "$row" != *"not found"* ]] || missed=$((missed + 1))
done
[[ "$missed" -eq 0 ]] || { say "$missed of ${#names[@]} were not found in every try"; exit 1; }
