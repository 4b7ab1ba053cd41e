"""``gpushare ps``: the jobs as rows of columns, for scripts and for people who choose columns."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from gpushare._settings import config
from gpushare.cli._ps.columns import COLUMNS, DEFAULT, choose, find, sorted_rows
from gpushare.cli._ps.forms import parse_form, render
from gpushare.cli._status.table import align
from gpushare.cli._targets.coordinators import (
    ask_each,
    find_sockets,
    merge_reports,
    without_doubles,
)
from gpushare.cli._targets.option import DeviceOption
from gpushare.cli.exit_code import ExitCode
from gpushare.errors import CoordinatorUnreachable


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="ps")(show_jobs)


def show_jobs(  # noqa: PLR0917 - a parameter is an option; typer calls it by names
    columns: Annotated[
        str, typer.Option("--columns", "-o", help='Names with commas between them, or "help".')
    ] = DEFAULT,
    form: Annotated[
        str, typer.Option("--format", help="table, json, or csv[,noheader][,nounits].")
    ] = "table",
    mine: Annotated[bool, typer.Option("--me", help="Only your own jobs.")] = False,
    group: Annotated[str, typer.Option(help="Only jobs of this group.")] = "",
    sort: Annotated[
        str, typer.Option(help='A column; with a "-" before it the largest first.')
    ] = "",
    device: DeviceOption = "",
) -> None:
    """Print a line for each job, with the columns that are asked for. Exit 3: no coordinator."""
    if columns == "help":
        print("\n".join(align([(each.name, each.unit or "-", each.text) for each in COLUMNS])))
        return
    chosen, shape = choose(columns), parse_form(form)
    if sort:
        find(sort.removeprefix("-"))  # a wrong name is said before anybody is asked
    sockets = find_sockets(config.load(), device)
    try:
        report = merge_reports(without_doubles(ask_each(sockets)))
    except CoordinatorUnreachable:
        if shape.name == "json":
            print(render([], chosen, shape), flush=True)
        raise
    rows = [row for row in _jobs(report) if _is_asked_for(row, mine, group)]
    text = render(sorted_rows(rows, sort) if sort else rows, chosen, shape)
    if text:  # without jobs and without a header there is no line
        print(text)
    if report.get("jobs_left_out"):
        sys.stdout.flush()
        print(
            f"gpushare: {report['jobs_left_out']} jobs more do not fit into the coordinator's "
            "answer and are not listed",
            file=sys.stderr,
        )
        raise typer.Exit(ExitCode.ERROR)


def _jobs(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of all jobs; a coordinator of an earlier version has no device in them."""
    return [
        {"device": device["device"], **row}
        for device in report["devices"]
        for row in device["jobs"]
    ]


def _is_asked_for(row: dict[str, Any], mine: bool, group: str) -> bool:
    return (not mine or row["uid"] == os.getuid()) and (not group or row.get("group") == group)
