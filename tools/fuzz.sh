#!/usr/bin/env bash
# Runs each fuzzer of tests/fuzz for FUZZ_SECONDS (30) from its corpus. What it finds on the way stays
# in build/fuzz/corpus; a crash is written to build/fuzz and fails the run.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

build=build/fuzz
names=()
for source in tests/fuzz/*_fuzz.cpp; do
  names+=("$(basename "$source" _fuzz.cpp)")
done
configure $build "-DGS_UNITY=${GS_UNITY:-none}" -DCMAKE_CXX_COMPILER="$(find_clang)" -DGS_BUILD_FUZZERS=ON \
  -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -gline-tables-only"
cmake --build $build -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" --target "${names[@]/%/_fuzz}"

for name in "${names[@]}"; do
  say "fuzzing $name for ${FUZZ_SECONDS:-30} s"
  mkdir -p "$build/corpus/$name"
  log=$build/$name.log
  "${fixed_addresses[@]}" "$build/tests/fuzz/${name}_fuzz" "-max_total_time=${FUZZ_SECONDS:-30}" -timeout=10 \
    -artifact_prefix="$build/${name}-" "$build/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1 ||
    { tail -n 40 "$log" >&2; die "$name: the fuzzer found something (above; input in $build)"; }
  tail -n 1 "$log"
done
