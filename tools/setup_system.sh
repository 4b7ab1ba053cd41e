#!/usr/bin/env bash
# Installs the system packages that a target needs and that are missing: `setup_system.sh build|test`.
#
# The list is shown first. Without root it uses sudo; where that does not work, or where there is no
# apt, it prints the list and stops. GPUSHARE_SKIP_SYSTEM=1 skips it all, for other distributions.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

level=${1:?usage: setup_system.sh build|test}
[ "${GPUSHARE_SKIP_SYSTEM:-}" != 1 ] || exit 0

# Ubuntu 22.04 has g++ 11, which lacks what we use, and clang brings its sanitizers along; its cmake
# is replaced by pip's (setup_venv.sh).
compiler=g++
if grep -qs '^VERSION_ID="22.04"' /etc/os-release; then compiler=g++-12; fi

packages=(
  "$compiler" cmake ninja-build ccache
  python3 python3-dev python3-venv
  libspdlog-dev libfmt-dev nlohmann-json3-dev libasio-dev
  libcli11-dev libtomlplusplus-dev libexpected-dev
)
# Tests: frameworks, clang with its sanitizers and fuzzer, the model checker, the shell's linter, and
# systemd-analyze, which judges the unit of the service; tmux, a terminal for `gpushare top`.
if [ "$level" = test ]; then
  packages+=(
    git libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev
    clang spin shellcheck systemd tmux
  )
  [ "$compiler" != g++ ] || packages+=(libclang-rt-dev)
  # These packages start services, which nobody wants on his own machine.
  [ -z "${CI:-}" ] || packages+=(prometheus slurmctld slurmd slurm-client munge)
fi

# One stamp a level, keyed by the list: a repeated run costs nothing.
stamp=build/.stamp-system-$level
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "${packages[*]}" ]; then exit 0; fi

command -v dpkg-query >/dev/null ||
  die "no Debian or Ubuntu: install the equivalents of these and set GPUSHARE_SKIP_SYSTEM=1:
  ${packages[*]}"

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  say "system packages to install: ${missing[*]}"
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "neither root nor sudo. Have these installed, then try again:
  apt-get install ${missing[*]}"
    # Without a terminal nobody can type a password, so sudo must not ask for one.
    as_root=(sudo)
    [ -t 0 ] || as_root+=(-n)
  fi
  install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get install -y -q -o Dpkg::Use-Pty=0 --no-install-recommends)
  # The package lists of a bare machine are empty or old. If this fails, installing decides.
  "${as_root[@]}" apt-get update -q || say "apt-get update failed; trying with the lists there are"
  "${install[@]}" "${missing[@]}" || die "could not install. Have these installed, then try again:
  apt-get install ${missing[*]}"
fi

mkdir -p build
printf '%s' "${packages[*]}" >"$stamp"
