#!/usr/bin/env bash
# Packages with known vulnerabilities, direct or not, in any project.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/vulnerable.sh

Asks the package source about the packages of all projects. Exit code 0: none has a known vulnerability; 1: some have,
and each is named; 3: the source cannot be reached, or does not know.
USAGE
}

read_options "$@" </dev/null
need_dotnet
report="$(mktemp)"
trap 'rm -f "$report"' EXIT
cd "$KAHUNA_ROOT"
if ! dotnet list Kahuna.sln package --vulnerable --include-transitive >"$report" 2>&1 || grep -q 'NU1900\|NU1905\|error:' "$report"; then
  say "the package source does not answer, or knows no vulnerabilities"
  exit 3
fi
if grep -E '^ +> ' "$report"; then
  say "packages with known vulnerabilities are above; take newer versions in Directory.Packages.props"
  exit 1
fi
projects="$(grep -c 'has no vulnerable packages' "$report" || true)"
[[ "$projects" -gt 0 ]] || { say "the answer of dotnet list package is not understood"; exit 3; }
say "$projects projects, no package with a known vulnerability"
