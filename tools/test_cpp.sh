#!/usr/bin/env bash
# Builds and runs the C++ tests in one configuration: `test_cpp.sh debug|asan|tsan [LAYER ...]`.
#
# debug: GCC with the expensive checks. asan, tsan: Clang (whose thread-safety analysis thus sees all
# the code) with AddressSanitizer and UBSan, or ThreadSanitizer. Each has its build folder, so each
# is incremental. Without layers: all of them.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

mode=${1:?usage: test_cpp.sh debug|asan|tsan [LAYER ...]}
shift
build=build/cpp-$mode
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
arguments=(-DGS_BUILD_TESTS=ON -DGS_EXPENSIVE_CHECKS=ON -DCMAKE_BUILD_TYPE=Debug "-DGS_UNITY=${GS_UNITY:-all}"
  # After an edit, parsing the libraries' headers would take most of the time.
  "-DGS_PRECOMPILE=${GS_PRECOMPILE:-ON}")
run=()
# One seed for the property tests, so that a run fails for a change and not by luck. To look for more:
# RC_PARAMS="max_success=20000" build/cpp-debug/tests/cpp/gs_sched_tests
cases=seed=20261121
left_out=

case $mode in
  # Faster to run than without optimisation, and to compile than with all debug information.
  debug) arguments+=("-DCMAKE_CXX_FLAGS_DEBUG=-Og -g1") ;;
  # Without optimisation the whole takes 60 % of the time: these tests compile longer than they run.
  asan) sanitize="address;undefined" optimise=-O0 ;;
  # Left out: what one thread does again and again: each call of a device fails, orders of giving and
  # taking, a thousand spills, a long log.
  tsan) sanitize=thread optimise=-O0
    left_out='*Failure*.*:*Failing*.*:*LosesNothingByAFailingCall*:*Pieces.NothingIsLostInAnyOrder*'
    left_out+=':*AThousandLeaveNothingBehind*:Log.AFileIsReplaced*:HostVmm.KernelFigureEquals*' ;;
  *) die "no such configuration: $mode" ;;
esac
if [ "$mode" != debug ]; then
  # Line tables are enough for a trace that names its lines.
  arguments+=("-DCMAKE_CXX_COMPILER=$(find_clang)" "-DGS_SANITIZE=$sanitize"
    "-DCMAKE_CXX_FLAGS_DEBUG=$optimise -gline-tables-only")
  run=("${fixed_addresses[@]}")
  cases+=" max_success=30"
fi

configure "$build" "${arguments[@]}"
targets=()
labels=()
for layer in "$@"; do
  targets+=("gs_${layer}_tests")
  labels+=("$layer")
done
say "C++ tests, $mode${*:+: $*}"
cmake --build "$build" -j "$jobs" ${targets[@]:+--target "${targets[@]}"}

export RC_PARAMS=${RC_PARAMS:-$cases}
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
filter=()
if [ $# -gt 0 ]; then filter=(-L "^($(IFS='|' && echo "${labels[*]}"))\$"); fi
if [ -n "$left_out" ]; then export GTEST_FILTER="-$left_out"; fi
"${run[@]}" ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error "${filter[@]}"
