#!/usr/bin/env bash
# Checks the model of the lease word and its wake-ups, if the tree has one.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

[ -f tests/spin/run.sh ] || die "no tests/spin/run.sh"
say "spin model of the lease word"
bash tests/spin/run.sh
