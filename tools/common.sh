# Sourced by the scripts beside it: where things are, and how to say things.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# The virtual environment (VENV=path to use one of your own) and the Python that creates it.
VENV=${VENV:-.venv}
PYTHON=${PYTHON:-python3}
case $VENV in
  /*) export PATH="$VENV/bin:$PATH" ;;
  *) export PATH="$PWD/$VENV/bin:$PATH" ;;
esac

# ccache: a fresh clone beside an old one finds the old one's objects, wherever they lie.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
# What it needs to cache files that use a precompiled header.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}

# A test that hangs fails after so many seconds, with the stacks of all threads (pytest-timeout).
export PYTEST_TIMEOUT=${PYTEST_TIMEOUT:-300}

say() {
  if [ -t 2 ]; then printf '\033[1m==> %s\033[0m\n' "$*" >&2; else printf '==> %s\n' "$*" >&2; fi
}
# timed NAME COMMAND...: notes how long the command took, for the table at the end of .ci/run.
timed() {
  local name=$1 start=$SECONDS status=0
  shift
  "$@" || status=$?
  printf '%s\t%d\n' "$name" $((SECONDS - start)) >>"${GS_STAGE_TIMES:-/dev/null}"
  return "$status"
}
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Which compiler: CXX, or g++ if it knows C++20 well enough (12 or later), or the next one found.
if [ -z "${CXX:-}" ]; then
  for candidate in g++ g++-14 g++-13 g++-12; do
    if command -v "$candidate" >/dev/null && [ "$("$candidate" -dumpversion | cut -d. -f1)" -ge 12 ]; then
      [ "$candidate" = g++ ] || export CXX=$candidate
      break
    fi
  done
fi

# The newest clang++ there is.
find_clang() {
  local name
  for name in clang++ clang++-{20,19,18,17,16,15,14}; do
    if command -v "$name"; then return; fi
  done
  die "no clang++ found"
}

# configure FOLDER OPTION...: CMake for tests, without the module, unless FOLDER has been configured
# with the same options before. What CMake says is shown if it fails.
configure() {
  local build=$1
  shift
  [ "$(cat "$build/configured-with" 2>/dev/null)" != "$*" ] || return 0
  mkdir -p "$build"
  rm -f "$build/CMakeCache.txt"
  cmake -S . -B "$build" -G Ninja -DGS_BUILD_MODULE=OFF "$@" >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log" >&2
    die "cmake failed"
  }
  printf '%s' "$*" >"$build/configured-with"
}

# In front of a sanitized program: the sanitizers' memory has fixed places, which a kernel with much
# address randomisation may hand out before.
# shellcheck disable=SC2034  # used by the scripts that source this one
fixed_addresses=()
# shellcheck disable=SC2034
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi
