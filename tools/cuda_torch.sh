# Sourced after common.sh: a CUDA build of PyTorch, and gpushare with the fake CUDA device built for it.
# shellcheck shell=bash
# shellcheck disable=SC2034  # used by the scripts that source this one

# The folder of environments; each is named after its torch.
cuda_venvs=${CUDA_VENVS:-${XDG_CACHE_HOME:-$HOME/.cache}/gpushare}
needed_gb=12
test_packages=('pytest>=8' 'pytest-timeout>=2.3' 'pytest-xdist>=3.6' 'hypothesis>=6.100' numpy 'typer>=0.12' 'rich>=13')
# Why a function below returned 1.
why=

has_cuda_torch() {
  "$1" -c 'import sys, torch; sys.exit(torch.version.cuda is None)' >/dev/null 2>&1
}

# make_cuda_venv FOLDER VERSION: a new environment, which is whole only when the last line has been reached.
make_cuda_venv() {
  local venv=$1 version=$2 free_gb parent=$1 said
  until [ -d "$parent" ]; do parent=$(dirname "$parent"); done
  free_gb=$(df -P -B 1G "$parent" | awk 'NR == 2 { print $4 }')
  if [ "$free_gb" -lt "$needed_gb" ]; then
    why="torch==$version needs $needed_gb GB of disk, $free_gb GB are free at $parent"
    return 1
  fi
  say "installing torch $version with CUDA into $venv (5.5 GB, once)"
  # shellcheck disable=SC2153  # common.sh's
  [ -x "$venv/bin/python" ] || "$PYTHON" -m venv "$venv"
  # ===: a build for CPUs, version+cpu, would be equal too.
  if ! said=$("$venv/bin/python" -m pip install --quiet "torch===$version" "${test_packages[@]}" 2>&1); then
    printf '%s\n' "$said" >&2
    why="torch==$version cannot be installed: $(grep -m 1 ERROR <<<"$said" || tail -n 1 <<<"$said")"
    return 1
  fi
  if ! has_cuda_torch "$venv/bin/python"; then
    why="the index has torch==$version for CPUs only (TORCH_INDEX is not used here)"
    return 1
  fi
}

# have_cuda_headers PYTHON: a toolkit's of the same major version, or those beside torch, completed. What
# nvidia-cuda-runtime lacks (crt/) is in another package.
have_cuda_headers() {
  local cuda packages found
  cuda=$("$1" -c 'import torch; print(torch.version.cuda)')
  packages=$("$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia
  if [ -n "${GS_CUDA_INCLUDE:-}" ]; then return; fi
  for found in "$packages/cu${cuda%%.*}/include" "$packages/cuda_nvcc/include"; do
    if [ -e "$found/crt/host_defines.h" ]; then return; fi
  done
  for found in "/usr/local/cuda-$cuda/include" /usr/local/cuda/include; do
    if grep -q "define CUDA_VERSION ${cuda%%.*}0" "$found/cuda.h" 2>/dev/null &&
      [ -e "$found/crt/host_defines.h" ]; then return; fi
  done
  local package="nvidia-cuda-crt==$cuda.*"
  [ "${cuda%%.*}" -ge 13 ] || package="nvidia-cuda-nvcc-cu${cuda%%.*}==$cuda.*"
  if ! "$1" -m pip install --quiet "$package"; then
    why="there are no headers of CUDA $cuda (crt/) to be had"
    return 1
  fi
}

# build_for_cuda_torch PYTHON FOLDER TARGET...: builds these, and installs the package into FOLDER/python.
# Returns 1, or ends the shell, if that fails.
build_for_cuda_torch() {
  local python=$1 build=$2
  shift 2
  say "building gpushare for $("$python" -c 'import torch; print("torch", torch.__version__)') and the fake CUDA device"
  # The layers' objects are those of `make build`, which the compiler's cache has.
  local unity=none
  [ "${GS_UNITY:-none}" = none ] || unity=tests
  configure "$build" -DGS_BUILD_MODULE=ON "-DGS_UNITY=$unity" -DGS_BUILD_TESTS=ON -DGS_BUILD_FAKE_CUDA=ON \
    -DCMAKE_BUILD_TYPE=Release "-DPython_EXECUTABLE=$python" \
    ${GS_CUDA_INCLUDE:+"-DGS_CUDA_INCLUDE=$GS_CUDA_INCLUDE"}
  cmake --build "$build" -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" \
    --target _C gpushared fakecuda fakenvml fakecuda_ops "$@" || return 1
  # A package of its own, beside the one that is built for another torch.
  mkdir -p "$build/python"
  rm -rf "$build/python/gpushare"
  cp -r python/gpushare "$build/python/"
  rm -rf "$build"/python/gpushare/{_C*.so,_built.py,bin}
  cmake --install "$build" --prefix "$build/python" >/dev/null
}
