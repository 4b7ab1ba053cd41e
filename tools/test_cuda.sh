#!/usr/bin/env bash
# The tests against the CUDA build of PyTorch on the fake device (tests/fakecuda): no GPU is needed.
#
# That PyTorch is the virtual environment's own if it is a CUDA build, else one in the user's cache,
# made here once for all checkouts (CUDA_VENV names another place): 5.5 GB. Where that cannot be had, one
# line says SKIPPED, and the exit status is 0; with GS_REQUIRE_CUDA_TESTS=1 that is an error.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

cuda_torch=2.14.1
# The folder of headers that nvidia-cuda-runtime lacks; its version is that of this torch's CUDA.
cuda_headers='nvidia-cuda-crt==13.0.*'
needed_gb=12
cuda_venv=${CUDA_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/gpushare/torch-$cuda_torch-cuda}
build=build/cuda

skip() {
  [ "${GS_REQUIRE_CUDA_TESTS:-0}" != 1 ] ||
    die "the tests on the fake CUDA device cannot run: $* (GS_REQUIRE_CUDA_TESTS=1)"
  printf 'SKIPPED: the tests on the fake CUDA device: %s\n' "$*"
  exit 0
}

has_cuda_torch() {
  "$1" -c 'import sys, torch; sys.exit(torch.version.cuda is None)' >/dev/null 2>&1
}

# Into a new environment, which is whole only when the last line has been reached.
make_cuda_venv() {
  local free_gb parent=$cuda_venv
  until [ -d "$parent" ]; do parent=$(dirname "$parent"); done
  free_gb=$(df -P -B 1G "$parent" | awk 'NR == 2 { print $4 }')
  [ "$free_gb" -ge "$needed_gb" ] ||
    skip "torch==$cuda_torch needs $needed_gb GB of disk, $free_gb GB are free at $parent"
  say "installing torch $cuda_torch with CUDA into $cuda_venv (5.5 GB, once)"
  [ -x "$cuda_venv/bin/python" ] || "$PYTHON" -m venv "$cuda_venv"
  "$cuda_venv/bin/python" -m pip install --quiet "torch==$cuda_torch" 'pytest>=8' 'hypothesis>=6.100' \
    numpy 'typer>=0.12' 'rich>=13' || skip "torch==$cuda_torch cannot be installed"
  has_cuda_torch "$cuda_venv/bin/python" ||
    skip "the index has torch==$cuda_torch for CPUs only (TORCH_INDEX is not used here)"
}

# The toolkit's headers, or those beside torch, completed.
have_headers() {
  local found
  for found in "${GS_CUDA_INCLUDE:-}" /usr/local/cuda*/include "$("$1" -c 'import sysconfig
print(sysconfig.get_path("purelib"))')"/nvidia/cu*/include; do
    if [ -e "$found/crt/host_defines.h" ]; then return; fi
  done
  "$1" -m pip install --quiet "$cuda_headers" || skip "there are no CUDA headers (crt/) to be had"
}

python=$VENV/bin/python
if ! has_cuda_torch "$python"; then
  python=$cuda_venv/bin/python
  has_cuda_torch "$python" || make_cuda_venv
fi
have_headers "$python"

say "building gpushare for $("$python" -c 'import torch; print("torch", torch.__version__)') and the fake CUDA device"
configure "$build" -DGS_BUILD_MODULE=ON -DGS_BUILD_TESTS=ON -DGS_BUILD_FAKE_CUDA=ON \
  -DCMAKE_BUILD_TYPE=Release "-DPython_EXECUTABLE=$python" \
  ${GS_CUDA_INCLUDE:+"-DGS_CUDA_INCLUDE=$GS_CUDA_INCLUDE"}
cmake --build "$build" -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" \
  --target _C gpushared fakecuda fakenvml fakecuda_ops gs_fakecuda_tests gs_vm_tests
# A package of its own, beside the one that is built for another torch.
mkdir -p "$build/python"
rm -rf "$build/python/gpushare"
cp -r python/gpushare "$build/python/"
rm -rf "$build"/python/gpushare/{_C*.so,_built.py,bin}
cmake --install "$build" --prefix "$build/python" >/dev/null

failed=()
say "tests of the fake CUDA device"
"$build/tests/fakecuda/gs_fakecuda_tests" --gtest_brief=1 2>"$build/gs_fakecuda_tests.log" || {
  cat "$build/gs_fakecuda_tests.log"
  failed+=("gs_fakecuda_tests")
}
say "tests of the C++ core on it"
ctest --test-dir "$build" --output-on-failure --no-tests=error -R '^CudaOnFakeCuda$' ||
  failed+=("CudaOnFakeCuda")
say "tests with PyTorch on it"
"$python" -m pytest tests/cuda "$@" || failed+=("tests/cuda")
[ ${#failed[@]} -eq 0 ] || die "failed: $(printf '%s, ' "${failed[@]}" | sed 's/, $//')"
