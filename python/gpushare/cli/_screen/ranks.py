"""The ranks of one program as one row of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]


def merge(
    ranks: list[Row],
    whole: Row,
    *,
    most: Iterable[str],
    least: Iterable[str],
    sums: Iterable[str],
) -> Row:
    """Returns a row for all ranks.

    Args:
        ranks: Their rows; one at least.
        whole: That of the rank which speaks for all in what is not named below.
        most: Columns in which the largest value counts.
        least: Columns in which the smallest value counts.
        sums: Columns that are added up. Unknown (None) where that of one rank is.
    """
    merged = dict(whole)
    for columns, choose in ((most, max), (least, min), (sums, sum)):
        for column in columns:
            if column not in whole:  # a coordinator of an earlier version does not say
                continue
            values = [rank[column] for rank in ranks]
            merged[column] = None if None in values else choose(values)
    return merged


def count_ranks(name: str, ranks: list[Row]) -> str:
    """Returns the name of a program, with the number of its ranks behind it."""
    return f"{name} ({len(ranks)} ranks)"
