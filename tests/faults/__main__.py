"""Runs a campaign and prints what it did: `python -m tests.faults --minutes 60`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

# Two threads that spin for each other stand still on a busy machine. torch reads this when it is
# imported.
os.environ["OMP_NUM_THREADS"] = "1"

from tests.faults.campaign import Campaign
from tests.faults.kinds import chosen
from tests.faults.report import figures_of, table_of


def main() -> int:
    """Returns the exit status: 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-minute", type=float, default=50.0, help="faults (default: 50)")
    parser.add_argument("--iterations", type=int, default=150, help="of each job (default: 150)")
    parser.add_argument("--only", help="kinds of faults, by parts of their names, with commas")
    parser.add_argument("--other-package", type=Path, help="a folder with another gpushare")
    parser.add_argument("--json", type=Path, help="writes the figures there")
    parser.add_argument("--quiet", action="store_true", help="no line for each fault")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # nothing is left
    kinds = chosen(options.only)
    say = (lambda _line: None) if options.quiet else lambda line: print(line, flush=True)
    campaign = Campaign(options.seed, options.iterations, say, options.other_package)
    campaign.run(kinds, options.minutes * 60.0, options.per_minute)
    figures = figures_of(campaign, kinds)
    print(table_of(figures))
    if figures["lost"]:
        log = campaign.folder / "problems.log"
        log.write_text("\n\n".join(figures["problems"]))
        print(f"what is known of each problem: {log}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if figures["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
