"""One row a gang: the ranks of one distributed program count as one job in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpushare.cli._screen.ranks import count_ranks, merge

if TYPE_CHECKING:
    from gpushare._accounts.accounts import Row

_LONGEST = ("end", "wall_seconds", "held_seconds", "waited_seconds")
_SLOWEST = ("iterations", "iterations_per_second", "iterations_per_second_alone")
_SUMS = ("peak_bytes", "spilled_bytes", "restored_bytes", "dropped_bytes")


def fold(rows: list[Row]) -> list[Row]:
    """Returns the rows with those of the ranks of a program as one.

    Args:
        rows: Of jobs, in the order in which they ended.

    Returns:
        A program stands where its last rank stood, and ended as the rank did that ended worst.
    """
    programs: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        is_rank = row["gang"] and row["ranks"] > 1
        name = row["gang"] if is_rank else row["device"] + row["id"]
        key = (row["host"], row["uid"], name)
        ranks = programs.pop(key, [])
        programs[key] = [*ranks, row]
    return [_merge(ranks) if len(ranks) > 1 else ranks[0] for ranks in programs.values()]


def _merge(ranks: list[Row]) -> Row:
    failed = [rank for rank in ranks if rank["how"] != "ended" or rank["exit_code"]]
    whole = merge(ranks, (failed or ranks)[0], most=_LONGEST, least=_SLOWEST, sums=_SUMS)
    whole["name"] = count_ranks(whole["name"], ranks)
    return whole
