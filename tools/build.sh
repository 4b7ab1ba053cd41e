#!/usr/bin/env bash
# Compiles what changed of the module and the daemon, into python/gpushare (the editable install).
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

"$VENV/bin/python" setup.py --quiet build_ext --inplace
