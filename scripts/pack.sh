#!/usr/bin/env bash
# Packs kahuna and kahuna-bench as .NET tools and the client library; with --tool-path it installs the
# tools there as well, from these packages.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/pack.sh [--tool-path DIR]

Writes Kahuna.Cli/nupkg/Kahuna.Cli.VERSION.nupkg (the tool kahuna), Kahuna.Benchmark/nupkg/Kahuna.Benchmark.VERSION.nupkg
(the tool kahuna-bench) and Kahuna.Client/nupkg/Kahuna.Client.VERSION.nupkg (the SDK).

  --tool-path DIR   installs kahuna and kahuna-bench into DIR afterwards
USAGE
}

# The SDK's package works alone: both assemblies with their documentation, and the dependencies of both.
check_sdk_package() {
  local package="$1" entries nuspec entry id
  need_package unzip unzip -v
  entries="$(unzip -Z1 "$package")"
  for entry in lib/net10.0/Kahuna.{Client,Wire}.{dll,xml}; do
    grep -qx "$entry" <<<"$entries" || die "$package lacks $entry"
  done
  nuspec="$(unzip -p "$package" Kahuna.Client.nuspec)"
  for id in Google.Protobuf Microsoft.Extensions.{DependencyInjection.Abstractions,Diagnostics.HealthChecks,Logging.Abstractions,Options}; do
    grep -q "<dependency id=\"$id\"" <<<"$nuspec" || die "$package does not depend on $id"
  done
  ! grep -q '<dependency id="Kahuna' <<<"$nuspec" || die "$package depends on another package of Kahuna"
}

tool_path=
read_options "$@" <<'OPTIONS'
tool-path .+ a directory
OPTIONS

need_dotnet
say "packing Kahuna.Cli, Kahuna.Benchmark and Kahuna.Client (Release)"
for tool in Kahuna.Cli Kahuna.Benchmark; do
  dotnet pack "$KAHUNA_ROOT/$tool" -c Release --nologo -v q -p:RestoreLockedMode=true >&2
done
dotnet pack "$KAHUNA_ROOT/Kahuna.Client" -c Release --nologo -v q -o "$KAHUNA_ROOT/Kahuna.Client/nupkg" \
  -p:RestoreLockedMode=true >&2
for package in "$KAHUNA_ROOT"/Kahuna.Client/nupkg/Kahuna.Client.*.nupkg; do
  check_sdk_package "$package"
done
ls -1 "$KAHUNA_ROOT"/Kahuna.{Cli,Benchmark}/nupkg/*.nupkg "$KAHUNA_ROOT"/Kahuna.Client/nupkg/*.nupkg

if [[ -n "$tool_path" ]]; then
  say "installing kahuna and kahuna-bench into $tool_path"
  for tool in Kahuna.Cli Kahuna.Benchmark; do
    dotnet tool install --tool-path "$tool_path" --add-source "$KAHUNA_ROOT/$tool/nupkg" "$tool" >&2
  done
  echo "$tool_path/kahuna"
  echo "$tool_path/kahuna-bench"
else
  for tool in Kahuna.Cli Kahuna.Benchmark; do
    say "install it with: dotnet tool install --global --add-source $tool/nupkg $tool"
  done
fi
