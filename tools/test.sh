#!/usr/bin/env bash
# Runs the tests of a set-up tree: `test.sh all|python|e2e|install|gallery|ray|first-half-hour [pytest arguments]`. All runners
# run, even after one failed; the exit status is 1 if any did.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

what=${1:?usage: test.sh all|python|e2e|install|gallery|ray|first-half-hour [pytest arguments]}
shift
failed=()

# In which configuration the C++ tests run: CI has them once, under the sanitizers.
configuration=${GS_CPP_TESTS:-debug}
cpp() { timed "C++ tests" tools/test_cpp.sh "$configuration" || failed+=("C++ tests"); }

# pytest_in NAME FOLDER...: one run of pytest.
pytest_in() {
  local name=$1
  shift
  say "$name tests"
  timed "$name tests" "$VENV/bin/python" -m pytest "${two_at_a_time[@]}" "$@" "${arguments[@]}" ||
    failed+=("$name tests")
}

arguments=("$@")
# Files of tests, not tests: what one file's tests have in common is made once. Few tests start sooner alone.
two_at_a_time=()
[ $# -gt 0 ] || two_at_a_time=(-n 2 --dist loadfile)
case $what in
  all)
    cpp
    pytest_in Python tests/python tests/lint
    pytest_in end-to-end tests/e2e tests/hostile tests/install
    pytest_in gallery --dist load tests/gallery
    ;;
  gallery) GALLERY=${GALLERY:-all} pytest_in gallery --dist load tests/gallery ;;
  ray)
    GALLERY=all pytest_in Ray tests/gallery/test_ray.py::test_six_trials_on_two_devices \
      tests/gallery/test_ray.py::test_two_runs_of_ray_train_over_two_devices \
      tests/gallery/test_ray_nodes.py::test_up_starts_what_is_missing \
      tests/gallery/test_ray_nodes.py::test_two_runs_with_a_rank_on_each_node
    ;;
  python) pytest_in Python tests/python tests/lint ;;
  e2e) pytest_in end-to-end tests/e2e tests/hostile tests/install ;;
  install) pytest_in installation tests/install ;;
  first-half-hour)
    two_at_a_time=()
    pytest_in 'first half hour' tests/first_half_hour
    ;;
  *) die "no such tests: $what" ;;
esac

# What failed first has scrolled away by now.
if [[ " ${failed[*]} " == *"C++ tests"* ]]; then
  grep -h -A6 -e ': Failure$' -e '\*\*\*Failed' -e '\*\*\*Timeout' "build/cpp-$configuration/Testing/Temporary/LastTest.log" | tail -60 || true
fi
[ ${#failed[@]} -eq 0 ] || die "failed: $(printf '%s, ' "${failed[@]}" | sed 's/, $//')"
