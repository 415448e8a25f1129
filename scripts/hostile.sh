#!/usr/bin/env bash
# Three real processes with authentication: two users work on their own names, and a third one attacks them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/hostile.sh [--minutes M] [--seed N]

  --minutes M      how long the attack goes on; default 10
  --seed N         decides about work and attacks; default: another one each time

The hostile user has rights on its own names only. It asks for those of the others in every way in, tries passwords,
sends broken and huge requests, and leaves connections and watches open. Nothing that it receives may have a name or
a value of the others, nothing of theirs may change, and the nodes' memory stays bounded.

Exit code 0: clean; 1: something is wrong, or the run proved nothing; 2: bad usage.
USAGE
}

read_options "$@" <<'OPTIONS'
minutes 0*[1-9][0-9]{0,4}(\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9][0-9]{0,2} a number above 0
seed [0-9]{1,9} a whole number
OPTIONS

need_dotnet
build Kahuna.Tests

# The nodes' directories: on a real disk, and gone at the end also when the run is broken off.
work="$(make_work_dir)"
trap 'rm -rf "$work"' EXIT
status=0
TMPDIR="$work" run_tests_command hostile "${arguments[@]}" || status=$?
exit "$status"
