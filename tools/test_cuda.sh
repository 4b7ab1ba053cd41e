#!/usr/bin/env bash
# The tests against the CUDA build of PyTorch on the fake device (tests/fakecuda): no GPU is needed.
#
# That PyTorch is the virtual environment's own if it is a CUDA build, else one in the user's cache,
# made here once for all checkouts (CUDA_VENV names another place): 5.5 GB. Where that cannot be had, one
# line says SKIPPED, and the exit status is 0; with GS_REQUIRE_CUDA_TESTS=1 that is an error.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=tools/cuda_torch.sh
. tools/cuda_torch.sh

cuda_torch=2.14.1
cuda_venv=${CUDA_VENV:-$cuda_venvs/torch-$cuda_torch-cuda}
build=build/cuda

skip() {
  [ "${GS_REQUIRE_CUDA_TESTS:-0}" != 1 ] ||
    die "the tests on the fake CUDA device cannot run: $* (GS_REQUIRE_CUDA_TESTS=1)"
  printf 'SKIPPED: the tests on the fake CUDA device: %s\n' "$*"
  exit 0
}

python=$VENV/bin/python
if ! has_cuda_torch "$python"; then
  python=$cuda_venv/bin/python
  has_cuda_torch "$python" || make_cuda_venv "$cuda_venv" "$cuda_torch" || skip "$why"
fi
# An environment made by an older checkout may lack some.
"$python" -c 'import pytest_timeout, xdist' 2>/dev/null || "$python" -m pip install --quiet "${test_packages[@]}"
have_cuda_headers "$python" || skip "$why"
build_for_cuda_torch "$python" "$build" gs_fakecuda_tests gs_vm_tests

two_at_a_time=()
[ $# -gt 0 ] || two_at_a_time=(-n 2 --dist loadfile)
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
"$python" -m pytest "${two_at_a_time[@]}" tests/cuda "$@" || failed+=("tests/cuda")
[ ${#failed[@]} -eq 0 ] || die "failed: $(printf '%s, ' "${failed[@]}" | sed 's/, $//')"
