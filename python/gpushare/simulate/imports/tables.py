"""Traces that are tables: which columns each has, and what they mean."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gpushare.simulate.imports.ran_job import RanJob, seconds_of

Cells = dict[str, str]


class Table(NamedTuple):
    """A form: a text is of it if it has all its columns."""

    form: str
    columns: frozenset[str]
    read: Callable[[Cells], RanJob | None]
    """None: the line is no job."""
    between: str = ","


_TRES_GPUS = re.compile(r"gres/gpu(?::[^=,]*)?=([0-9]+)")
_ELAPSED = re.compile(r"(?:([0-9]+)-)?([0-9]+):([0-9]+):([0-9]+)")


def _helios(cells: Cells) -> RanJob:
    return RanJob(
        name=f"{cells.get('vc', '')}.{cells['job_id']}",
        user=cells["user"],
        submit_seconds=seconds_of(cells["submit_time"]),
        seconds=float(cells["duration"]),
        gpus=float(cells["gpu_num"]),
    )


def _tiresias(cells: Cells) -> RanJob:
    return RanJob(
        name=f"{cells['model_name']}.{cells['job_id']}",
        user="",
        submit_seconds=float(cells["submit_time"]),
        seconds=float(cells["duration"]),
        gpus=float(cells["num_gpu"]),
        iterations=int(cells["iterations"]),
    )


def _pai(cells: Cells) -> RanJob:
    return RanJob(
        name=cells["job_id"],
        user=cells["user"],
        submit_seconds=float(cells["submit_time"]),
        seconds=float(cells["duration"]),
        gpus=float(cells["num_gpu"] or 0) * float(cells.get("num_inst") or 1),
    )


def _pai_task(cells: Cells) -> RanJob:
    start, end = float(cells["start_time"] or 0), float(cells["end_time"] or 0)
    return RanJob(
        name=f"{cells['job_name'][:12]}.{cells['task_name']}",
        user="",
        submit_seconds=start,
        seconds=end - start if start and end else 0.0,
        gpus=float(cells["plan_gpu"] or 0) / 100 * float(cells["inst_num"] or 1),
    )


def _openb(cells: Cells) -> RanJob:
    scheduled, end = cells["scheduled_time"], cells["deletion_time"]
    whole = float(cells["num_gpu"] or 0)
    return RanJob(
        name=cells["name"],
        user="",
        submit_seconds=float(cells["creation_time"]),
        seconds=float(end) - float(scheduled) if scheduled and end else 0.0,
        gpus=whole * float(cells["gpu_milli"] or 0) / 1000 if whole == 1 else whole,
    )


def _slurm(cells: Cells) -> RanJob | None:
    if "." in cells["JobID"]:
        return None  # a step of a job
    name = cells.get("JobName", "")
    return RanJob(
        name=f"{name}.{cells['JobID']}" if name else cells["JobID"],
        user=cells["User"],
        submit_seconds=seconds_of(cells["Submit"]),
        seconds=_elapsed(cells.get("ElapsedRaw") or cells.get("Elapsed", "")),
        gpus=_slurm_gpus(cells),
    )


def _elapsed(text: str) -> float:
    found = _ELAPSED.fullmatch(text)
    if not found:
        return float(text)
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
    rows = csv.DictReader(text.splitlines(), delimiter=table.between)
    for cells in rows:
        try:
            # What a line has beyond its columns stands under None, what it lacks is None.
            job = table.read({name: value or "" for name, value in cells.items() if name})
        except (KeyError, ValueError) as error:
            what = f"no column is called {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{table.form}: line {rows.line_num}: {what}") from error
        if job is not None:
            yield job
