#!/usr/bin/env bash
# Compiles the server, the client, the load generator and the command line for macOS and Windows. Nothing is run: this
# says that it compiles, not that it works there. Calls that a system does not have are refused by each build (CA1416).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[[ $# -eq 0 ]] || bad_usage "takes no options"
need_dotnet
work="$(make_work_dir)"
trap 'rm -rf "$work"' EXIT

# A copy, because the lock files of packages here are for no system.
cd "$KAHUNA_ROOT"
tar -c --exclude=bin --exclude=obj --exclude=packages.lock.json Kahuna.Client Kahuna.Server Kahuna.Benchmark Kahuna.Cli Directory.*.props .editorconfig | tar -x -C "$work"
cd "$work"
for system in osx-arm64 win-x64; do
  say "compiling for $system"
  # No program of the system is made, which would need its packages. What is equal for both is compiled once.
  for tool in Kahuna.Benchmark Kahuna.Cli; do
    dotnet build "$tool" -c Release --nologo -v q -warnaserror -p:RuntimeIdentifier="$system" -p:SelfContained=false -p:UseAppHost=false -p:RunAnalyzers=false -p:AppendRuntimeIdentifierToOutputPath=false >&2
  done
done
say "compiled for osx-arm64 and win-x64"
