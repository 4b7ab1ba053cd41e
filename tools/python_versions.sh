#!/usr/bin/env bash
# Sets gpushare up with other versions of Python, each in a virtual environment of its own under
# build/pythons, and runs the Python tests and those of the wheel there: `python_versions.sh PYTHON...`.
# It ends with a line for each. Builds only what depends on Python anew, if ccache is there.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

# try_with PYTHON VENV: in a clone of its own, since an editable installation lies in its sources.
try_with() (
  rm -rf "$2.src" && git clone --quiet . "$2.src" && cd "$2.src" || return
  export VENV=$2 PYTHON=$1
  tools/setup_venv.sh test && tools/build.sh && tools/test.sh python -q && tools/test.sh install -q
)

[ $# -gt 0 ] || die "usage: PYTHONS=\"python3.10 /path/to/python3.12\" make python-versions"
tools/setup_system.sh test
lines=()
failed=0
for python in "$@"; do
  version=$("$python" -c 'import platform; print(platform.python_version())')
  venv=$PWD/build/pythons/$version
  say "Python $version"
  log=$venv.log
  mkdir -p "$(dirname "$log")"
  said=passed
  if ! try_with "$python" "$venv" >"$log" 2>&1 </dev/null; then
    said="FAILED, see $log"
    failed=1
  fi
  torch=$("$venv/bin/python" -c 'import torch; print(torch.__version__)' 2>/dev/null || echo none)
  lines+=("Python $version, torch $torch: $said")
done
printf '%s\n' "${lines[@]}"
exit "$failed"
