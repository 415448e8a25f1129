#!/usr/bin/env bash
# What size and age cost three processes on this machine: many keys, flushing and cutting, a snapshot
# under load, and half an hour of overwriting.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/scale.sh [options]

  --sections LIST  of keys,flush,snapshot,long; default keys,flush,snapshot
  --keys LIST      sizes for keys, with commas between; default 10000,1000000
  --stored N       keys that flush and snapshot work on; default 1000000
  --seconds S      measured seconds per point; default 10, and 30 for flush
  --rounds N       how often keys, flush and snapshot measure each of their points; default 3
  --minutes M      how long the keys are overwritten in long; default 30
  --output FILE    writes everything that was measured there as JSON

keys      what sets and gets, memory, disk and a restart cost at each size, against the smallest
flush     sets while states are flushed and the log is cut, against sets without
snapshot  sets while a follower is filled by snapshot, against sets without
long      10,000 keys overwritten at full speed: disk, memory and rate over the minutes

Each prints a table, its floors and "ok" or "BELOW"; the exit code is 0 also when one is below.
A million keys are written in half a minute, ten million in five. All lies under .kahuna/ and is removed; nothing stays
running.
USAGE
}

read_options "$@" <<'OPTIONS'
sections (keys|flush|snapshot|long)(,(keys|flush|snapshot|long))* names of keys, flush, snapshot, long
keys [1-9][0-9]{0,8}(,[1-9][0-9]{0,8})* numbers with commas between
stored [1-9][0-9]{0,8} a whole number from 1 on
seconds [1-9][0-9]{0,8} a whole number from 1 on
rounds [1-9][0-9]{0,8} a whole number from 1 on
minutes [1-9][0-9]{0,8} a whole number from 1 on
output FILE a file in a directory that exists
OPTIONS

[[ -r /proc/self/status ]] || die "this needs Linux: it reads /proc"
measure
