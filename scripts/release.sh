#!/usr/bin/env bash
# Makes what a release consists of, from the commit that is checked out.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<USAGE
Usage: scripts/release.sh [--out DIR] [--systems LIST]
       scripts/release.sh --check ARCHIVE

Writes into DIR (default artifacts/release), which is emptied first:
  kahuna-server-VERSION-SYSTEM.tar.gz   the server and kahuna in one file each, and what a service needs
  *.nupkg                               the packages of scripts/pack.sh
  *.cdx.json                            a bill of materials (CycloneDX) for each archive and package
  SHA256SUMS                            checksums of all of them

  --systems LIST    linux-x64, linux-arm64, or both with a comma between (default)
  --check ARCHIVE   unpacks an archive, starts the server, sets and gets a key, stops it; nothing is made

Files that are not committed are left out. The same commit and SDK give the same bytes; SOURCE_DATE_EPOCH sets the time
in the archives (default: the commit's). The archive for this machine is checked at the end.
USAGE
}

# check_archive ARCHIVE: as --check says. Everything is below $work, on a port that is free.
check_archive() {
  local root="$work/check" port pid answer
  mkdir -p "$root/unpacked"
  tar -xzf "$1" -C "$root/unpacked" --strip-components=1
  for port in $(shuf -i 20000-29999 -n 20) none; do
    port_in_use "$port" || break
  done
  [[ "$port" != none ]] || die "found no free port"
  env -i KAHUNA_DEV_CERT_DIR="$root/certificates" "$root/unpacked/kahuna-server" --data "$root/data" \
    --listen "https://127.0.0.1:$port" >"$root/log" 2>&1 &
  pid=$!
  env -i "$root/unpacked/kahuna-server" health --endpoint "https://127.0.0.1:$port" --wait 120 >&2 ||
    { kill -KILL "$pid"; cat "$root/log" >&2; die "the server of $1 does not become ready"; }
  local call=(env -i HOME="$root" "$root/unpacked/kahuna")
  "${call[@]}" set release hello -c "https://127.0.0.1:$port" --trusted-ca "$root/certificates/ca.pem" >&2
  answer="$("${call[@]}" get release -c "https://127.0.0.1:$port" --trusted-ca "$root/certificates/ca.pem")"
  kill -TERM "$pid"
  wait "$pid" || { cat "$root/log" >&2; die "the server of $1 ended with exit code $?"; }
  [[ "$answer" == hello ]] || die "the key has the wrong value: $answer"
  grep -q '"stateStore": "rocksdb"' "$root/data/node.json" || die "the server of $1 has no RocksDB"
  say "checked $(basename "$1"): it starts, stores a key and stops"
}

# publish SYSTEM: the archive, from the source in $work.
publish() {
  local system="$1" name="kahuna-server-$version-$1" stage pack folder text
  stage="$work/$name"
  say "publishing for $system"
  for pack in Kahuna.Server Kahuna.Cli; do
    dotnet publish "$source/$pack" -c Release -r "$system" --nologo -v q -p:RestoreLockedMode=true \
      -p:RunAnalyzers=false -o "$stage" >&2
  done
  mkdir -p "$stage/systemd" "$stage/docs" "$stage/licenses"
  cp "$source/LICENSE" "$source/deploy/archive/README.md" "$source/deploy/certificates.sh" "$stage/"
  cp "$source"/deploy/systemd/* "$stage/systemd/"
  cp "$source"/docs/*.md "$stage/docs/"
  for pack in Microsoft.{NETCore,AspNetCore}.App.Runtime; do
    folder="$packages/${pack,,}.$system"
    folder="$(find "$folder" -mindepth 1 -maxdepth 1 -name "$(runtime_version "$system" "$pack.$system")")"
    for text in "$folder"/LICENSE.* "$folder"/THIRD-PARTY-NOTICES.*; do
      install -m 644 "$text" "$stage/licenses/$pack-$(basename "$text")"
    done
  done
  tar -C "$work" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX -cf - "$name" | gzip -n -9 >"$out/$name.tar.gz"
  bill Kahuna.Server "$name" -rt "$system" -tfm net10.0
  /usr/bin/python3 "$source/scripts/release_sbom.py" "$out/$name.cdx.json" --epoch "$SOURCE_DATE_EPOCH" \
    --deps "$(deps_of "$system")"
}

deps_of() { echo "$source/Kahuna.Server/obj/Release/net10.0/$1/kahuna-server.deps.json"; }

# runtime_version SYSTEM PACKAGE: of the runtime pack that the program contains.
runtime_version() {
  sed -n "s|.*\"runtimepack\\.$2/\\([^\"]*\\)\": {.*|\\1|p" "$(deps_of "$1")" | head -n 1
}

# bill PROJECT NAME [OPTIONS]: the bill of materials of a project that was restored.
bill() {
  local project="$1" name="$2"
  shift 2
  (cd "$source" && dotnet CycloneDX "$project/$project.csproj" -dpr -rs -ed -ns -F Json -o "$out" -fn "$name.cdx.json" \
    -sn "$project" -sv "$version" "$@") >"$work/bill.log" 2>&1 || { cat "$work/bill.log" >&2; die "no bill for $name"; }
}

out="$KAHUNA_ROOT/artifacts/release" systems=linux-x64,linux-arm64 check=
read_options "$@" <<'OPTIONS'
out .+ a directory
systems (linux-x64|linux-arm64)(,(linux-x64|linux-arm64))? linux-x64, linux-arm64 or both
check FILE an archive
OPTIONS
work="$(make_work_dir)"
trap 'rm -rf "$work"' EXIT
if [[ -n "$check" ]]; then
  check_archive "$check"
  exit
fi

need_dotnet
git -C "$KAHUNA_ROOT" rev-parse HEAD >/dev/null 2>&1 || die "a release is made from a commit, and this is no clone"
version="$(sed -n 's|.*<Version>\(.*\)</Version>.*|\1|p' "$KAHUNA_ROOT/Directory.Build.props")"
source="$work/source"
mkdir -p "$source" "$out"
out="$(cd "$out" && pwd)"
rm -f "$out"/*.tar.gz "$out"/*.nupkg "$out"/*.cdx.json "$out/SHA256SUMS"
git -C "$KAHUNA_ROOT" archive HEAD | tar -x -C "$source"

# For every build below: no path of this machine, no debug information (Kahuna.Server.csproj says why), and the commit
# in the version.
export PathMap="$source/=/_/" DebugType=none SourceRevisionId
SourceRevisionId="$(git -C "$KAHUNA_ROOT" rev-parse HEAD)"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git -C "$KAHUNA_ROOT" log -1 --format=%ct)}"
packages="$(dotnet nuget locals global-packages --list | sed 's/^[^:]*: *//;s|/$||')"
(cd "$source" && dotnet tool restore) >&2
for system in ${systems//,/ }; do
  publish "$system"
done

dotnet restore "$source/Kahuna.sln" --locked-mode -v q >&2
"$source/scripts/pack.sh" | while read -r package; do
  cp "$package" "$out/"
  name="$(basename "$package" ".$version.nupkg")"
  bill "$name" "$name.$version"
  /usr/bin/python3 "$source/scripts/release_sbom.py" "$out/$name.$version.cdx.json" --epoch "$SOURCE_DATE_EPOCH"
done
(cd "$out" && sha256sum -- *.tar.gz *.nupkg *.cdx.json >SHA256SUMS)
case "$(uname -m)" in x86_64) own=linux-x64 ;; aarch64) own=linux-arm64 ;; *) own=none ;; esac
[[ ",$systems," != *",$own,"* ]] || check_archive "$out/kahuna-server-$version-$own.tar.gz"
say "made $out:"
ls -l "$out"
