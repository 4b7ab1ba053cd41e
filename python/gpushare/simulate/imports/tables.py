"""Traces that are tables: which columns each has, and what they mean."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gpushare.simulate.imports.ran_job import RanJob, seconds_of, shown

Cells = dict[str, str]


class Table(NamedTuple):
    """A form: a text is of it if it has all its columns."""

    form: str
    columns: frozenset[str]
    read: Callable[[Cells], RanJob | None]
    """None: the line is no job."""
    between: str = ","


_TRES_GPUS = re.compile(r"gres/gpu(?::[^=,]*)?=([0-9]+)")
_ELAPSED = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9}):([0-9]{1,9}):([0-9]{1,9})")


def _number(
    cells: Cells, column: str, *, empty: float | None = None, form: str = "a finite number"
) -> float:
    """Reads a number.

    Args:
        cells: Of the line.
        column: Which of them.
        empty: What an empty cell means, and one that is not there; None: neither is allowed.
        form: What the column may have, for the error.
    """
    text = cells[column] if empty is None else cells.get(column, "")
    if not text and empty is not None:
        return empty
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"column {column!r}: {shown(text)} is not {form}")
    return number


def _count(cells: Cells, column: str) -> int:
    form = "a whole number"
    number = _number(cells, column, form=form)
    if not number.is_integer():
        raise ValueError(f"column {column!r}: {shown(cells[column])} is not {form}")
    return int(number)


def _time(cells: Cells, column: str) -> float:
    return seconds_of(cells[column], f"column {column!r}")


def _helios(cells: Cells) -> RanJob:
    return RanJob(
        name=f"{cells.get('vc', '')}.{cells['job_id']}",
        user=cells["user"],
        submit_seconds=_time(cells, "submit_time"),
        seconds=_number(cells, "duration"),
        gpus=_number(cells, "gpu_num"),
    )


def _tiresias(cells: Cells) -> RanJob:
    return RanJob(
        name=f"{cells['model_name']}.{cells['job_id']}",
        user="",
        submit_seconds=_number(cells, "submit_time"),
        seconds=_number(cells, "duration"),
        gpus=_number(cells, "num_gpu"),
        iterations=_count(cells, "iterations"),
    )


def _pai(cells: Cells) -> RanJob:
    return RanJob(
        name=cells["job_id"],
        user=cells["user"],
        submit_seconds=_number(cells, "submit_time"),
        seconds=_number(cells, "duration"),
        gpus=_number(cells, "num_gpu", empty=0) * _number(cells, "num_inst", empty=1),
    )


def _pai_task(cells: Cells) -> RanJob:
    start, end = _number(cells, "start_time", empty=0), _number(cells, "end_time", empty=0)
    return RanJob(
        name=f"{cells['job_name'][:12]}.{cells['task_name']}",
        user="",
        submit_seconds=start,
        seconds=end - start if start and end else 0.0,
        gpus=_number(cells, "plan_gpu", empty=0) / 100 * _number(cells, "inst_num", empty=1),
    )


def _openb(cells: Cells) -> RanJob:
    has_run = bool(cells["scheduled_time"] and cells["deletion_time"])
    whole = _number(cells, "num_gpu", empty=0)
    return RanJob(
        name=cells["name"],
        user="",
        submit_seconds=_number(cells, "creation_time"),
        seconds=_number(cells, "deletion_time") - _number(cells, "scheduled_time")
        if has_run
        else 0.0,
        gpus=whole * _number(cells, "gpu_milli", empty=0) / 1000 if whole == 1 else whole,
    )


def _slurm(cells: Cells) -> RanJob | None:
    if "." in cells["JobID"]:
        return None  # a step of a job
    name = cells.get("JobName", "")
    return RanJob(
        name=f"{name}.{cells['JobID']}" if name else cells["JobID"],
        user=cells["User"],
        submit_seconds=_time(cells, "Submit"),
        seconds=_elapsed(cells),
        gpus=_slurm_gpus(cells),
    )


def _elapsed(cells: Cells) -> float:
    column = "ElapsedRaw" if cells.get("ElapsedRaw") else "Elapsed"
    found = _ELAPSED.fullmatch(cells[column])
    if not found:
        return _number(cells, column, form="a time such as 1-02:03:04, or seconds")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds


def _slurm_gpus(cells: Cells) -> float:
    # With a type, a job has the sum (gres/gpu=2) and its parts (gres/gpu:a100=2).
    return max(
        (float(number) for name in ("AllocTRES", "ReqTRES")
         for number in _TRES_GPUS.findall(cells.get(name, ""))),
        default=0.0,
    )  # fmt: skip


def _form(name: str, columns: str, read: Callable[[Cells], RanJob | None]) -> Table:
    return Table(name, frozenset(columns.split()), read)


TABLES = (
    _form("Helios' cluster_log", "job_id user gpu_num submit_time duration", _helios),
    _form(
        "Tiresias' trace", "job_id num_gpu submit_time iterations model_name duration", _tiresias
    ),
    _form("PAI's trace of jobs", "job_id user num_gpu submit_time duration", _pai),
    _form(
        "PAI's task table", "job_name task_name inst_num start_time end_time plan_gpu", _pai_task
    ),
    _form("PAI's list of pods", "name num_gpu gpu_milli creation_time scheduled_time", _openb),
    _form("Slurm's accounts", "JobID User Submit", _slurm)._replace(between="|"),
)
"""Published by HeliosData, Tiresias, Alibaba's clusterdata (2020 and 2023), and by `sacct -P`."""


def find(text: str) -> Table | None:
    """Returns the form that a text's first line names the columns of, or None."""
    head = text.partition("\n")[0]
    for table in TABLES:
        if table.columns <= {name.strip() for name in head.split(table.between)}:
            return table
    return None


def read(table: Table, text: str) -> Iterator[RanJob]:
    """Yields its jobs.

    Raises:
        ValueError: A line is not of this form; the text says which, and why.
    """
    table_rows = csv.DictReader(io.StringIO(text), delimiter=table.between)
    lines = table_rows.reader  # whose line_num is right behind a blank line, and if it fails
    try:
        for cells in table_rows:
            # What a line has beyond its columns stands under None, what it lacks is None.
            job = table.read({name.strip(): value or "" for name, value in cells.items() if name})
            if job is not None:
                yield job._replace(place=f"line {lines.line_num}")
    except (KeyError, ValueError, csv.Error) as error:
        what = f"no column is called {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{table.form}: line {lines.line_num}: {what}") from error
