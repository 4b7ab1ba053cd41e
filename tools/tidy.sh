#!/usr/bin/env bash
# clang-tidy with .clang-tidy over csrc, or over the files named: `tidy.sh [FILE ...]`.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

"$VENV/bin/python" -m pip install --quiet "$(sed -n 's/^tidy = \["\(.*\)"\]$/\1/p' pyproject.toml)"
# The module's build has every file of csrc, `binding` too.
database=$("$VENV/bin/python" -c 'import sys; print("build/" + sys.implementation.cache_tag)')
[ -f "$database/compile_commands.json" ] || die "no $database/compile_commands.json; run make build"
files=("$@")
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(git ls-files --cached --others --exclude-standard 'csrc/*.cpp')
# The database is GCC's: clang does not know all of its options.
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" "$VENV/bin/clang-tidy" -p "$database" \
  --quiet --extra-arg=-Wno-unknown-warning-option
echo "tidy: clean"
