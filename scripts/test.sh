#!/usr/bin/env bash
# Everything that must hold before a change is taken: locked restore, build with warnings as
# errors, format, all tests. The last line counts the tests.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/test.sh [--tier fast|cluster|all] [--filter EXPRESSION]

  --tier     fast: everything inside one process, the simulator too; cluster: three real server processes,
             and all commands of the benchmarking page; all (the default): both, and the format check
  --filter   runs only the tests that match (the syntax of dotnet test --filter)
USAGE
}

tier=all
filter=
read_options "$@" <<'OPTIONS'
tier fast|cluster|all fast, cluster or all
filter .+ an expression
OPTIONS

need_dotnet
# The tests call the server with gRPC implementations that are not ours, and inject disk errors.
need_package python3-grpcio /usr/bin/python3 -c 'import grpc'
need_package python3-protobuf /usr/bin/python3 -c 'import google.protobuf'
need_package nodejs node -e 'process.exit(Number.parseInt(process.versions.node, 10) < 18 ? 1 : 0)'
need_package npm npm --version
need_package strace strace -V
need_package curl curl --version
need_package prometheus promtool --version
need_package openssl openssl version
need_package systemd systemd-analyze --version
need_package chromium-driver chromedriver --version # brings chromium
need_package chromium-headless-shell command -v chromium-headless-shell
need_package libnss3-tools command -v certutil

export DOTNET_TieredPGO=0 DOTNET_EnableWriteXorExecute=0 # processes that live for seconds start with a fifth less
export DOTNET_ThreadPool_UnfairSemaphoreSpinLimit=0 # a thread without work does not keep a processor from other processes
slow_build=150 # seconds for the shipped projects; a machine that takes more is slow

cd "$KAHUNA_ROOT"
say "restoring (locked)"
dotnet restore Kahuna.sln --locked-mode -v q >&2
install_node_packages
say "building (Release, warnings are errors)"
begin_stamps
begun=$SECONDS
dotnet build Kahuna.Benchmark -c Release --no-restore --nologo -v q -warnaserror >&2
is_slow=false
if [[ $((SECONDS - begun)) -gt "$slow_build" ]]; then
  say "a slow machine: the analyzers of the tests, the format, the planted bugs and the commands of the benchmarking page are left to others; repeated tests repeat less"
  is_slow=true
fi
dotnet build Kahuna.sln -c Release --no-restore --nologo -v q -warnaserror -p:TestsWithoutAnalyzers="$is_slow" >&2
end_stamps

results="$KAHUNA_ROOT/TestResults"
rm -rf "$results"
mkdir -p "$results"
formatting=
vulnerable=
if [[ "$tier" == all && -z "$filter" && "$is_slow" == false ]]; then
  # It needs one processor, and nothing waits for it. The rest of the style is checked by the build and by tests.
  say "checking the format, and that other systems compile, beside the tests"
  { nice -n 19 dotnet format whitespace Kahuna.sln --no-restore --verify-no-changes && nice -n 19 scripts/check-platforms.sh; } >"$results/format.log" 2>&1 &
  formatting=$!
  # What became known elsewhere is told and is no failure of this change.
  { nice -n 19 scripts/vulnerable.sh || true; } >"$results/vulnerable.log" 2>&1 &
  vulnerable=$!
fi

passed=0 failed=0 skipped=0 broken=0
failures=()

count() { sed -n "s/.*<Counters [^>]*$2=\"\([0-9]*\)\".*/\1/p" "$1" | head -n 1; }

# tell_failures TRX: the failed tests of a result file, each with the beginning of its message.
tell_failures() {
  /usr/bin/python3 - "$1" <<'PYTHON'
import sys
import xml.etree.ElementTree as xml

ns = {"t": "http://microsoft.com/schemas/VisualStudio/TeamTest/2010"}
for result in xml.parse(sys.argv[1]).iterfind(".//t:UnitTestResult[@outcome='Failed']", ns):
    print(f"\ntest.sh: FAILED {result.get('testName')}")
    for part, length in ("Message", 4000), ("StackTrace", 600):
        text = result.findtext(f".//t:ErrorInfo/t:{part}", "", ns)
        print(text if len(text) <= length else f"{text[:length]} ...")
PYTHON
}

# test_tier NAME FILTER [THREADS]: runs the tests of a tier, by default with a thread for each processor; the result file is $results/NAME.trx. A test that takes long is named.
test_tier() {
  local name="$1" expression="$2" threads="${3:-0}"
  [[ -z "$filter" ]] || expression="($expression)&($filter)"
  say "tests: $name"
  timeout --foreground 70m dotnet test Kahuna.Tests -c Release --no-build --nologo --filter "$expression" \
    --logger "trx;LogFileName=$name.trx" --logger "console;verbosity=minimal" --results-directory "$results" \
    -- xUnit.MaxParallelThreads="$threads" xUnit.DiagnosticMessages=true xUnit.LongRunningTestSeconds=600
}

# count_tier NAME STATUS: the counts come from the result file; a run without one counts as broken.
count_tier() {
  local name="$1" status="$2" trx total executed tier_passed tier_failed
  trx="$results/$name.trx"
  if [[ ! -e "$trx" ]]; then
    # A filter that matches nothing leaves no file; everything else without one is a broken run.
    if [[ -z "$filter" || "$status" -ne 0 ]]; then
      say "the $name tests did not end normally (exit code $status)"
      broken=$((broken + 1))
    fi
    return 0
  fi
  total="$(count "$trx" total)"
  executed="$(count "$trx" executed)"
  tier_passed="$(count "$trx" passed)"
  tier_failed=$((executed - tier_passed))
  passed=$((passed + tier_passed))
  failed=$((failed + tier_failed))
  skipped=$((skipped + total - executed))
  if [[ "$status" -ne 0 && "$tier_failed" -eq 0 ]]; then
    say "the $name tests did not end normally (exit code $status)"
    broken=$((broken + 1))
  fi
  [[ "$tier_failed" -eq 0 ]] || failures+=("$trx")
  # What the tests with real processes checked and measured.
  sed -n 's/^\(<StdOut>\|.*<StdOut>\)\{0,1\}\(Checked: .*\)/\2/p' "$trx" | sed 's/<\/StdOut>.*//'
}

# threads_below PID: every thread of the process and of those that it has begun.
threads_below() {
  local child
  ls "/proc/$1/task" 2>/dev/null || true
  for child in $(pgrep -P "$1"); do
    threads_below "$child"
  done
}

# What the simulator does is the same however fast it is, so it takes what the real processes leave of the machine, and
# something beside other work in any case.
simulate() {
  local status=0
  export DOTNET_GCgen0size=0x8000000 # a seventh faster than with a collection for each few megabytes
  renice -n 10 $BASHPID >/dev/null
  test_tier simulation 'FullyQualifiedName~Kahuna.Tests.Simulation.' || status=$?
  if [[ -z "$filter" && "$is_slow" == true ]]; then
    touch "$results/planted-bugs-left-out"
  elif [[ -z "$filter" ]]; then
    say "planted bugs"
    "$KAHUNA_ROOT/scripts/mutants.sh" --some 1 --most 2000 && touch "$results/planted-bugs-found"
  fi
  return "$status"
}

# Tests wait most of the time, for kills, leases, elections and answers: so some run beside others.
page=Kahuna.Tests.Benchmark.BenchmarkingPageTests
locks=(Kahuna.Tests.Cluster.LockCrashTests Kahuna.Tests.Cluster.ShutdownTests)
states=(Kahuna.Tests.Cluster.StateCrashTests Kahuna.Tests.Cluster.EphemeralCrashTests Kahuna.Tests.Cluster.FullDiskTests Kahuna.Tests.Cluster.AtMostOnceCrashTests Kahuna.Tests.Cluster.PeerTlsTests Kahuna.Tests.Cluster.DiskFaultTests)
[[ "$is_slow" == true ]] || locks+=("$page")
doors=(Kahuna.Tests.Access. Kahuna.Tests.Cli. Kahuna.Tests.Hosting.Page.)
any_of() { printf '|FullyQualifiedName~%s' "$@" | cut -c 2-; }
none_of() { printf '&FullyQualifiedName!~%s' "$@" | cut -c 2-; }

# beside NAME FILTER [THREADS]: runs a tier in the background; join_tier NAME waits for it and counts it.
declare -A running=()
beside() {
  test_tier "$@" &
  running[$1]=$!
}

join_tier() {
  local status=0
  [[ -n "${running[$1]:-}" ]] || return 0
  wait "${running[$1]}" || status=$?
  running[$1]=
  count_tier "$1" "$status"
}

if [[ "$tier" != cluster ]]; then
  simulate &
  simulation=$!
  beside doors "$(any_of "${doors[@]}")"
  [[ "$is_slow" == false ]] || join_tier doors
  beside fast "$(none_of Kahuna.Tests.Cluster. Kahuna.Tests.Simulation. "$page" "${doors[@]}")" "$([[ "$is_slow" == true ]] || echo 4)"
  join_tier doors
fi
if [[ "$tier" != fast ]]; then
  beside cluster-states "$(any_of "${states[@]}")"
fi
join_tier fast
if [[ "$tier" != fast ]]; then
  # A slow machine has no time for three.
  [[ "$is_slow" == false ]] || join_tier cluster-states
  beside cluster-locks "$(any_of "${locks[@]}")"
  beside cluster "FullyQualifiedName~Kahuna.Tests.Cluster.&$(none_of "${locks[@]}" "${states[@]}")"
fi
for name in cluster cluster-states cluster-locks; do join_tier "$name"; done
if [[ "$tier" != cluster ]]; then
  # Nothing is left for which it should stand back. Only some users may say so.
  mapfile -t threads < <(threads_below "$simulation")
  [[ ${#threads[@]} -eq 0 ]] || renice -n 0 -p "${threads[@]}" >/dev/null 2>&1 || true
  status=0
  wait "$simulation" || status=$?
  count_tier simulation "$status"
  if [[ -z "$filter" ]]; then
    if [[ -e "$results/planted-bugs-left-out" ]]; then
      skipped=$((skipped + 1))
    elif [[ -e "$results/planted-bugs-found" ]]; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
    fi
  fi
fi

if [[ -n "$formatting" ]] && ! wait "$formatting"; then
  cat "$results/format.log" >&2
  say "not formatted (dotnet format Kahuna.sln mends that), or not compiled for other systems; the lines above say which"
  broken=$((broken + 1))
fi

if [[ -n "$vulnerable" ]]; then
  wait "$vulnerable"
  cat "$results/vulnerable.log" >&2
fi

failed=$((failed + broken))
# Once more and last, where a reader looks first: which tests failed, and what they said.
for trx in "${failures[@]}"; do
  tell_failures "$trx" >&2
done
say "took $SECONDS s; result files are in TestResults/"
if [[ "$skipped" -gt 0 ]]; then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
[[ "$failed" -eq 0 && "$passed" -gt 0 ]]
