#!/usr/bin/env bash
# Builds the server and runs one node in the foreground; without options it is a standalone
# node on https://127.0.0.1:8082 with a development certificate of its own.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build Kahuna.Server
exec dotnet "$SERVER_DLL" "$@"
