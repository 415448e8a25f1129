#!/usr/bin/env bash
# Builds kahuna-bench and runs it. Without options: reads and writes, half and half, for ten
# seconds against a three-node cluster that it starts inside its own process (real TLS, real
# disk). Options go to kahuna-bench as they are; where they name no cluster, the embedded one
# is used. docs/benchmarking.md describes them all.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build Kahuna.Benchmark
if [[ $# -eq 0 ]]; then
  set -- --workload mixed --duration 10 --warmup 3
  say "kahuna-bench -c embedded:3 $*"
fi

for option in "$@"; do
  case "$option" in
    -c | -c=* | -c?* | --connection-source | --connection-source=* | --connection-source:* | -h | '-?' | --help | --version)
      exec dotnet "$BENCH_DLL" "$@"
      ;;
  esac
done
exec dotnet "$BENCH_DLL" -c embedded:3 "$@"
