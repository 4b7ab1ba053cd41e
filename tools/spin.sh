#!/usr/bin/env bash
# Checks the models of the lease word, its wake-ups and the gate, if the tree has them.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "$0")/common.sh"

[ -f tests/spin/run.sh ] || die "no tests/spin/run.sh"
say "spin models of the lease word and the gate"
bash tests/spin/run.sh
