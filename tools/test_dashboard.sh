#!/usr/bin/env bash
# The tests of the dashboard's page in the system's Chromium: `test_dashboard.sh [pytest arguments]`.
# Where playwright or Chromium cannot be had, one line says SKIPPED, and the exit status is 0.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

skip() {
  printf 'SKIPPED: the tests of the dashboard in a browser: %s\n' "$*"
  exit 0
}

command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
  skip "there is no chromium (apt-get install chromium)"
"$VENV/bin/python" -c 'import playwright' 2>/dev/null ||
  "$VENV/bin/python" -m pip install --quiet playwright ||
  skip "playwright cannot be installed (pip install playwright)"
exec "$VENV/bin/python" -m pytest tests/dashboard "$@"
