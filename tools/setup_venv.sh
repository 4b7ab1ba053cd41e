#!/usr/bin/env bash
# Makes the virtual environment, puts torch into it if it has none, and installs gpushare there in
# editable form (which compiles it): `setup_venv.sh [test|lint ...]`, the extras to install as well.
#
# Which torch: GPUSHARE_TORCH ("torch==2.12.1", or a wheel) with TORCH_INDEX (an index's URL), if set;
# it takes the place of another one. Otherwise what is there, or the tested version; without an NVIDIA GPU its CPU build, which is a tenth of the size.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

tested_torch=2.13.0
cpu_index=https://download.pytorch.org/whl/cpu
python=$VENV/bin/python

make_venv() {
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "Python 3.10 or later is needed; $PYTHON is $("$PYTHON" --version 2>&1). Set PYTHON=..."
  say "creating the virtual environment $VENV"
  "$PYTHON" -m venv "$VENV"
  # torch wants this setuptools too. A build must not fetch its own (no build isolation, see setup.py).
  "$python" -m pip install --quiet 'setuptools>=77' wheel
}

has_torch() {
  "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'
}

wanted_torch=${GPUSHARE_TORCH:-}${TORCH_INDEX:+ from $TORCH_INDEX}
torch_stamp=$VENV/.gpushare-torch

# What was asked for is not what was asked for the last time. Who asks for nothing takes any torch.
wants_other_torch() { [ -n "$wanted_torch" ] && [ "$wanted_torch" != "$(cat "$torch_stamp" 2>/dev/null)" ]; }

install_torch() {
  if [ -n "${GPUSHARE_TORCH:-}${TORCH_INDEX:-}" ]; then
    say "installing ${GPUSHARE_TORCH:-torch==$tested_torch}${TORCH_INDEX:+ from $TORCH_INDEX}"
    "$python" -m pip install --quiet "${GPUSHARE_TORCH:-torch==$tested_torch}" \
      ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
    printf '%s' "$wanted_torch" >"$torch_stamp"
    return
  fi
  if [ ! -e /dev/nvidia0 ]; then
    say "installing torch $tested_torch for CPUs (no /dev/nvidia0; TORCH_INDEX=... chooses another)"
    # From where pip looks anyway (a wheel folder, a mirror), else from torch's own index. PyPI has
    # only the CUDA build, which works too: the last resort below.
    "$python" -m pip install --quiet "torch==$tested_torch+cpu" 2>/dev/null && return
    "$python" -m pip install --quiet --retries 0 --timeout 10 "torch==$tested_torch+cpu" \
      --index-url "$cpu_index" && return
    say "no CPU build to be had"
  fi
  say "installing torch $tested_torch"
  "$python" -m pip install --quiet "torch==$tested_torch"
}

# Ubuntu 22.04's cmake is 3.22.
need_cmake() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')
  [ "$(printf '%s\n' 3.25 "${version:-0}" | sort -V | head -n 1)" = 3.25 ] && return
  say "installing cmake (3.25 or later is needed, found: ${version:-none})"
  "$python" -m pip install --quiet 'cmake>=3.25,<4.2'
}

# What the installation depends on. The compiled parts are not in it: the build looks after them.
fingerprint() { cat pyproject.toml setup.py python/gpushare/version.py tools/setup_venv.sh | sha256sum; }

extras=$(IFS=, && echo "$*")
# A stamp for each extra, since one run may install several.
stamps=("${@/#/$VENV/.gpushare-installed-}")
[ $# -gt 0 ] || stamps=("$VENV/.gpushare-installed-plain")
state="$PWD $(fingerprint)"
is_installed() {
  local stamp
  for stamp in "${stamps[@]}"; do
    [ "$(cat "$stamp" 2>/dev/null)" = "$state" ] || return 1
  done
}
if ! wants_other_torch && is_installed; then exit 0; fi

[ -x "$python" ] || make_venv
if wants_other_torch || ! has_torch; then install_torch; fi
need_cmake
# Before pip, which would hide the compiler's progress; pip then finds everything built.
say "building gpushare (the first time takes a minute or two)"
tools/build.sh
say "installing gpushare${extras:+[$extras]} into $VENV"
"$python" -m pip install --quiet --no-build-isolation -e ".${extras:+[$extras]}"
for stamp in "${stamps[@]}"; do printf '%s' "$state" >"$stamp"; done
