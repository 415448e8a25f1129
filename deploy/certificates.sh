#!/usr/bin/env bash
# Makes what a cluster needs beside its program: an authority, certificates under it, and the cluster's secret. For
# clusters without an authority of their own; needs openssl.
set -euo pipefail

usage() {
  cat <<USAGE
Usage: certificates.sh DIRECTORY NAME[,NAME...] ...

Each argument after DIRECTORY is a certificate: its files are called after the first name, and it is valid for all of
them (host names and IP addresses). In DIRECTORY:

  ca.pem, ca-key.pem        the authority, 10 years; the key is for certificates.sh only, keep it off the nodes
  NAME.pem, NAME-key.pem    a certificate for servers and clients, 1 year, and its key
  secret                    the cluster's secret

Files that exist stay as they are: remove a certificate to have it made anew. Keys and the secret are readable by their
owner only.
USAGE
}

fail() {
  printf 'certificates.sh: %s\n' "$*" >&2
  exit 1
}

if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
  usage
  exit 0
fi
if [[ $# -lt 2 || "$1" == -* ]]; then
  usage >&2
  exit 2
fi
command -v openssl >/dev/null || fail "openssl is missing"
directory="$1"
shift
for names in "$@"; do
  [[ "$names" =~ ^[A-Za-z0-9][A-Za-z0-9.-]*(,[A-Za-z0-9.:-]+)*$ ]] ||
    fail "'$names' is not a list of host names and addresses, separated by commas"
done

umask 077
mkdir -p "$directory"
cd "$directory"
new=".new.$$"
trap 'rm -f "$new" "$new".*' EXIT

# ask OPENSSL ARGUMENTS: its complaints are shown only if it fails.
ask() {
  local out
  out="$(openssl "$@" 2>&1)" || fail "openssl $1 failed: $out"
}

# make_key FILE
make_key() {
  ask genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}

# subject_alternatives NAMES: as openssl writes them.
subject_alternatives() {
  local name list=()
  IFS=, read -r -a list <<<"$1"
  for name in "${list[@]}"; do
    if [[ "$name" == *:* || "$name" =~ ^[0-9.]+$ ]]; then
      printf 'IP:%s,' "$name"
    else
      printf 'DNS:%s,' "$name"
    fi
  done
}

if [[ ! -e ca.pem ]]; then
  make_key ca-key.pem
  ask req -x509 -new -key ca-key.pem -days 3650 -subj "/CN=Kahuna cluster authority" \
    -addext "keyUsage=critical,keyCertSign,cRLSign" -out "$new"
  mv "$new" ca.pem
  chmod 644 ca.pem
fi
if [[ ! -e secret ]]; then
  openssl rand -hex 32 >"$new"
  mv "$new" secret
fi
for names in "$@"; do
  name="${names%%,*}"
  if [[ -e "$name.pem" ]]; then
    continue
  fi
  [[ -e ca-key.pem ]] || fail "ca-key.pem is missing, which signs the certificate of $name"
  alternatives="$(subject_alternatives "$names")"
  printf '%s\n' "basicConstraints=critical,CA:false" "keyUsage=critical,digitalSignature" \
    "extendedKeyUsage=serverAuth,clientAuth" "subjectAltName=${alternatives%,}" >"$new.extensions"
  make_key "$new.key"
  ask req -new -key "$new.key" -subj "/CN=$name" -out "$new.request"
  ask x509 -req -in "$new.request" -CA ca.pem -CAkey ca-key.pem -set_serial "0x$(openssl rand -hex 16)" -days 365 \
    -sha256 -extfile "$new.extensions" -out "$new"
  mv "$new.key" "$name-key.pem"
  mv "$new" "$name.pem"
  chmod 644 "$name.pem"
done
