#!/usr/bin/env bash
# Everything that reads the source: `lint.sh [--fix]`. All checks run; the exit status is 1 if any
# found something. `--fix` reformats first.
set -uo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

bin=$VENV/bin
mapfile -t cpp < <(git ls-files --cached --others --exclude-standard '*.cpp' '*.h' |
  while read -r file; do [ ! -f "$file" ] || echo "$file"; done)
mapfile -t scripts < <(git ls-files --cached --others --exclude-standard '*.sh' .ci/run 'scripts/*')
failed=()

check() {
  local name=$1
  shift
  "$@" || failed+=("$name")
}

if [ "${1:-}" = --fix ]; then
  "$bin/clang-format" -i "${cpp[@]}"
  "$bin/ruff" format --quiet .
  "$bin/ruff" check --quiet --fix .
fi

check clang-format "$bin/clang-format" --dry-run --Werror "${cpp[@]}"
check "ruff format" "$bin/ruff" format --check --quiet .
check ruff "$bin/ruff" check --quiet .
check mypy "$bin/mypy" python/gpushare
check codespell "$bin/codespell" csrc python tests tools docs benchmarks ./*.md
check shellcheck shellcheck -x "${scripts[@]}"
for name in layers questions terms files text foreign_text headers symbols python_rooms; do
  check "$name" "$bin/python" "tests/lint/check_$name.py"
done

[ ${#failed[@]} -eq 0 ] || die "lint: $(printf '%s, ' "${failed[@]}" | sed 's/, $//')"
echo "lint: clean"
