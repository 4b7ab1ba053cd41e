"""``gpushare verify -- COMMAND``: does sharing change this program's results?

The program runs alone on torch's own allocator, and then under gpushare with all its memory spilled
and restored at each boundary, which is far more often than in use. Losses and parameters are
compared by their bits.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from gpushare.cli._options.settings import check_settings
from gpushare.cli._verify.comparison import Comparison, compare, describe
from gpushare.cli._verify.run import (
    Record,
    VerifyError,
    alone_environment,
    base_environment,
    run_recorded,
    spilling_environment,
)
from gpushare.cli.exit_code import ExitCode
from gpushare.cli.run import check_command
from gpushare.cli.units import format_bytes


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="verify", context_settings={"allow_interspersed_args": False})(verify)


def verify(
    command: Annotated[list[str], typer.Argument(help="The program and its arguments.")],
    repeat: Annotated[
        bool, typer.Option("--repeat", help="First check that two runs alone agree.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare a program's results alone with those under forced spills, bit by bit.

    The program's own output goes to standard error.
    """
    check_command(command, is_required=check_settings(os.environ).require)
    try:
        report = run_and_compare(command, repeat=repeat)
    except VerifyError as error:
        print(f"gpushare: verify: {error}", file=sys.stderr)
        raise typer.Exit(ExitCode.ERROR) from error
    print(json.dumps(report.to_json()) if as_json else report.to_text())
    if not report.is_proof:
        raise typer.Exit(ExitCode.ERROR)


class Report:
    """The runs and how they compare."""

    def __init__(self, alone: Record, again: Record | None, spilling: Record) -> None:
        """Compares the runs.

        Args:
            alone: Without gpushare.
            again: The same once more, where asked for.
            spilling: With gpushare and forced spills.
        """
        self._alone = alone
        self._spilling = spilling
        self._repeated: Comparison | None = None if again is None else compare(alone, again)
        self._comparison = compare(alone, spilling)

    @property
    def is_proof(self) -> bool:
        """Whether results are the same, and memory was really moved."""
        return self._comparison.is_identical and self._spilling.spilled_bytes > 0

    def verdict(self) -> str:
        """Says what follows, in one or two sentences."""
        if self._repeated is not None and not self._repeated.is_identical:
            return (
                f"not deterministic alone ({describe(self._repeated)}), so sharing cannot be "
                "judged. Seed every generator; see torch.use_deterministic_algorithms"
            )
        if self._comparison.is_identical and not self._spilling.spilled_bytes:
            return "no proof: nothing was spilled. Does the program run under gpushare? See above"
        verdict = describe(self._comparison)
        if not self._comparison.is_identical and self._repeated is None:
            verdict += ". Is the program deterministic alone? gpushare verify --repeat tells"
        return verdict

    def to_text(self) -> str:
        """Renders one table and the verdict."""
        alone, spilling = self._alone, self._spilling
        rows = [
            ("", "alone", "under forced spills"),
            ("losses", str(len(alone.losses)), str(len(spilling.losses))),
            ("parameters", str(len(alone.parameters)), str(len(spilling.parameters))),
            (
                "optimizer steps",
                str(alone.num_optimizer_steps),
                str(spilling.num_optimizer_steps),
            ),
            ("spilled", "-", format_bytes(spilling.spilled_bytes)),
            ("seconds", f"{alone.seconds:.1f}", f"{spilling.seconds:.1f}"),
        ]
        lines = [f"{name:<16}{one:>12}{other:>22}" for name, one, other in rows]
        return "\n".join([*lines, self.verdict()])

    def to_json(self) -> dict[str, object]:
        """Returns what ``--json`` prints."""
        return {
            "schema_version": 1,
            "is_identical": self._comparison.is_identical,
            "is_deterministic_alone": self._repeated and self._repeated.is_identical,
            "is_proof": self.is_proof,
            "verdict": self.verdict(),
            "num_losses": self._comparison.num_losses,
            "first_different_loss": self._comparison.first_different_loss,
            "num_parameters": self._comparison.num_parameters,
            "different_parameters": self._comparison.different_parameters,
            "spilled_bytes": self._spilling.spilled_bytes,
            "alone_seconds": self._alone.seconds,
            "spilling_seconds": self._spilling.seconds,
        }


def run_and_compare(command: list[str], *, repeat: bool) -> Report:
    """Runs a program alone, perhaps again, and under forced spills.

    Raises:
        VerifyError: A run gave nothing to compare.
    """
    base = base_environment()
    with tempfile.TemporaryDirectory(prefix="gpushare-verify-") as folder:
        alone = run_recorded(command, alone_environment(base), Path(folder, "alone.json"))
        again = None
        if repeat:
            again = run_recorded(command, alone_environment(base), Path(folder, "again.json"))
        spilling = run_recorded(command, spilling_environment(base), Path(folder, "spilling.json"))
    return Report(alone, again, spilling)
