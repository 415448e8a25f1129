#!/usr/bin/env bash
# Kahuna, etcd and Redis on this machine, one after the other and several times in turn, all
# driven by the same load generator.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/compare.sh [options]

  --rounds N       how often the systems take turns; default 3
  --seconds S      measured seconds per point; default 2
  --warmup S       seconds of load before each point; default 1
  --workers LIST   default 1,64,256,1024
  --workloads LIST default set,get; also mixed, batch, transaction, script and watch, which have floors at 64 workers with
                   set in the list: --workloads set,batch,transaction,script,watch --workers 64
  --only LIST      of kahuna,etcd,redis; default all
  --json FILE      writes medians, spread and ratios there as well
  --against COMMIT compares with that version of Kahuna instead: builds both and takes turns; --rounds, --seconds,
                   --warmup and --json count

Kahuna: three processes, TLS and fsync on; "kahuna_ephemeral" is the same cluster with ephemeral
keys and locks, its workload sequence takes values from one sequence, lock acquires and releases
one of 10,000 locks, and handover gives one lock to the next of 1,000 that wait; "kahuna_standalone" is
one process under a mixed load of ephemeral keys at 64 workers. etcd: three processes, its defaults, no TLS. Redis:
one process, appendfsync always, no TLS; "redis" has a connection per worker, as redis-benchmark
and as many application processes have, "redis_pipelined" lets 128 workers share one. Keys bench:N
of 10,000, values of 128 bytes. "batch" writes 100 keys with one call, and its rate is that of the sets; Kahuna only.
"transaction" reads two keys and writes two with one request: of one partition in Kahuna, as txn in etcd;
"interactive" is one of several requests, and "transaction_2" one over two partitions of "kahuna_split", a cluster
with two partitions. "script" gets a key and sets it: a script of Kahuna, and EVAL of Redis.
"watch" is the time after which a watch delivers the changes of "paced_set", sets at half of the greatest rate;
"set_watched" is sets beside 1,000 watches of distinct keys, and "set_unwatched" without them.
The data of all three lies in one directory under .kahuna/, on the disk of this clone.
With the defaults it takes about a quarter of an hour and leaves nothing running.
USAGE
}

only=kahuna,etcd,redis
against=
read_options "$@" <<'OPTIONS'
rounds [1-9][0-9]* a whole number from 1 on
seconds [1-9][0-9]* a whole number from 1 on
warmup [1-9][0-9]* a whole number from 1 on
workers [1-9][0-9]*(,[1-9][0-9]*)* numbers with commas between
workloads (set|get|mixed|batch|transaction|script|watch)(,(set|get|mixed|batch|transaction|script|watch))* names of set, get, mixed, batch, transaction, script, watch
only (kahuna|etcd|redis)(,(kahuna|etcd|redis))* names of kahuna, etcd, redis
json FILE a file in a directory that exists
against .+ a commit
OPTIONS

if [[ -n "$against" ]]; then
  git -C "$KAHUNA_ROOT" rev-parse --verify --quiet "$against^{commit}" >/dev/null ||
    bad_usage "there is no commit $against in this clone"
  need_package python3-grpcio /usr/bin/python3 -c 'import grpc'
else
  [[ ",$only," != *,etcd,* ]] || need_package etcd-server etcd --version
  [[ ",$only," != *,redis,* ]] || need_package redis-server redis-server --version
fi
measure
