"""Compares two recorded runs bit by bit, and says where they part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpushare.cli._verify.run import Record


@dataclass(frozen=True)
class Comparison:
    """How two runs of one program differ."""

    first_different_loss: int | None
    """Number of the first backward pass, counted from 0, whose loss differs or is missing."""
    different_parameters: list[int]
    """Numbers of the parameters that differ or are missing at the end."""
    num_losses: tuple[int, int]
    """Losses of both runs."""
    num_parameters: tuple[int, int]
    """Parameters of both runs."""

    @property
    def is_identical(self) -> bool:
        """Whether every loss and every parameter has the same bits."""
        return self.first_different_loss is None and not self.different_parameters


def compare(one: Record, other: Record) -> Comparison:
    """Compares two runs' hashes."""
    return Comparison(
        first_different_loss=_first_difference(one.losses, other.losses),
        different_parameters=_differences(
            [str(parameter) for parameter in one.parameters],
            [str(parameter) for parameter in other.parameters],
        ),
        num_losses=(len(one.losses), len(other.losses)),
        num_parameters=(len(one.parameters), len(other.parameters)),
    )


def describe(comparison: Comparison) -> str:
    """Says in one line how two runs compare."""
    if comparison.is_identical:
        return (
            f"identical: {comparison.num_losses[0]} losses and "
            f"{comparison.num_parameters[0]} parameters have the same bits"
        )
    parts = []
    if comparison.first_different_loss is not None:
        parts.append(f"losses part at iteration {comparison.first_different_loss}")
    if comparison.different_parameters:
        parts.append(
            f"{len(comparison.different_parameters)} of {max(comparison.num_parameters)} "
            f"parameters differ, the first is number {comparison.different_parameters[0]}"
        )
    return "different: " + "; ".join(parts)


def _first_difference(one: list[str], other: list[str]) -> int | None:
    differences = _differences(one, other)
    return differences[0] if differences else None


def _differences(one: list[str], other: list[str]) -> list[int]:
    shorter, longer = sorted((len(one), len(other)))
    different = [index for index in range(shorter) if one[index] != other[index]]
    return different + list(range(shorter, longer))
