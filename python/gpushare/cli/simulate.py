"""``gpushare simulate``: a trace of jobs on virtual time, under several policies."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpushare.cli._accounts.options import SinceOption, make_filter, open_accounts
from gpushare.cli._screen.terminal import screen_width, show
from gpushare.cli.exit_code import ExitCode
from gpushare.printable import printable

if TYPE_CHECKING:
    from gpushare.simulate.imports.ran_job import Imported

_DEFAULT_POLICIES = "exclusive,rr,fair"
_GENERATING = {"generate", "jobs", "seed", "load", "output", "devices"}
"""What may be said when a trace is made."""
_MOST_CHARACTERS = 512 << 20
"""Of a trace: one without an end is refused."""


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="simulate")(simulate)


def simulate(
    words: typer.Context,
    trace: Annotated[
        Path | None,
        typer.Argument(help="A file, in our form or another's; - for standard input."),
    ] = None,
    *,
    policy: Annotated[
        str, typer.Option(help="Names, separated by commas; all are compared to the first.")
    ] = _DEFAULT_POLICIES,
    from_history: Annotated[
        bool, typer.Option("--from-history", help="The jobs that have ended on this machine.")
    ] = False,
    since: SinceOption = "7d",
    devices: Annotated[int, typer.Option(min=1, help="How many devices.")] = 1,
    speeds: Annotated[
        str | None,
        typer.Option(
            help="Of each device, as 1,1,0.5 or v100:1,k80:0.4: beside that of the trace's times."
        ),
    ] = None,
    capacity: Annotated[str, typer.Option(help="The memory of each device for jobs.")] = "16GiB",
    num_lanes: Annotated[
        int | None, typer.Option(help="How many jobs may run side by side, as far as they fit.")
    ] = None,
    min_quantum: Annotated[str | None, typer.Option(help="Shortest turn, as 60s.")] = None,
    max_wait: Annotated[
        str | None, typer.Option(help="How long the last in line should wait for a turn.")
    ] = None,
    host_budget: Annotated[str | None, typer.Option(help="RAM for spilled memory.")] = None,
    host_file: Annotated[
        str | None, typer.Option(help="A file for spilled memory, once the RAM is full.")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(help="Bytes a second between device and host.")
    ] = None,
    spill_bandwidth: Annotated[
        str | None, typer.Option(help="The same, from the device only.")
    ] = None,
    restore_bandwidth: Annotated[
        str | None, typer.Option(help="The same, to the device only.")
    ] = None,
    duplex: Annotated[
        bool | None, typer.Option(help="Both directions at full speed at once.")
    ] = None,
    switch: Annotated[str | None, typer.Option(help="What opening a lease costs.")] = None,
    context: Annotated[
        str | None, typer.Option(help="Device memory of a process beside its tensors.")
    ] = None,
    interference: Annotated[
        float | None,
        typer.Option(
            help="How much jobs side by side slow each other: 0, none; 1, no gain.",
            min=0,
        ),
    ] = None,
    failure_every: Annotated[
        str | None, typer.Option(help="A process fails once in so much of its time, as 24h.")
    ] = None,
    restart: Annotated[
        str | None, typer.Option(help="Until a job that has failed is there again. [60s]")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="A job is saved after so much of its time. [never]")
    ] = None,
    rebind: Annotated[
        str | None,
        typer.Option(help="Who may go to a device that is idle: never, unbegun or any. [never]"),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Stop at this time of the trace.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    rows: Annotated[bool, typer.Option(help="With --json: a row of each job, too.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Folder for plots (needs matplotlib).")] = None,
    generate: Annotated[
        str | None,
        typer.Option(
            help="Make a trace instead: salus, fitted, spread, short, alibaba, philly or one of "
            "Philly's virtual clusters: philly-ee9e8c, philly-11cb48, philly-b436b2, philly-6c71a0."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="With --generate: how many.")] = 100,
    seed: Annotated[int, typer.Option(help="With --generate.")] = 0,
    load: Annotated[
        float, typer.Option(help="With --generate: jobs' time over that of the devices.")
    ] = 1.2,
    output: Annotated[
        Path | None, typer.Option(help="Write the trace to this CSV file, and simulate nothing.")
    ] = None,
) -> None:
    """Replay a trace of jobs on virtual time, with the coordinator's own code, and compare."""
    given = {name for name in words.params if _is_given(words, name)}
    _check_goes_together(given)
    if generate is not None:
        _generate(generate, output, jobs=jobs, seed=seed, devices=devices, load=load)
        return
    if from_history:
        text, num_devices = _history(since)
        devices = devices if "devices" in given else num_devices
    else:
        text = _read(trace, is_converted=output is not None)
    if output is not None:
        _write(output, text)
        return
    asked = {
        "devices": devices if speeds is None or "devices" in given else None,
        "speeds": speeds, "failure_every": failure_every, "restart": restart,
        "checkpoint": checkpoint, "rebind": rebind, "capacity": capacity, "num_lanes": num_lanes,
        "min_quantum": min_quantum, "max_wait": max_wait, "host_budget": host_budget,
        "host_file": host_file, "bandwidth": bandwidth, "spill_bandwidth": spill_bandwidth,
        "restore_bandwidth": restore_bandwidth, "duplex": None if duplex is None else int(duplex),
        "switch": switch, "context": context, "interference": interference, "until": until,
    }  # fmt: skip
    machine = {name: str(value) for name, value in asked.items() if value is not None}
    policies = [name.strip() for name in policy.split(",") if name.strip()]
    if not policies:
        raise typer.BadParameter("names no policy", param_hint="--policy")
    if plot is not None:
        from gpushare.simulate import plots

        plots.check()
    from gpushare.simulate import runs

    with _saying(trace):
        reports = runs.run(
            text, policies, machine, jobs=rows or plot is not None, leases=plot is not None
        )
    if plot is not None:
        for path in plots.draw(reports, plot):
            print(path, file=sys.stderr)
    _show(reports, _shown_trace(trace), machine, as_json=as_json, with_rows=rows)


def _check_goes_together(given: set[str]) -> None:
    """Refuses options that would have no effect; ``given`` are those of the command line."""
    if "generate" in given:
        others = given - _GENERATING
        if others:
            names = ", ".join(sorted(_shown(name) for name in others))
            raise typer.BadParameter(
                f"makes a trace, to be simulated next: without {names}", param_hint="--generate"
            )
        return
    for name in sorted(given & (_GENERATING - {"devices", "output"})):
        raise typer.BadParameter("is for --generate", param_hint=_shown(name))
    if "from_history" in given and "trace" in given:
        raise typer.BadParameter("is a trace itself: without TRACE", param_hint="--from-history")
    for name in sorted(given & {"restart", "checkpoint"}):
        if "failure_every" not in given:
            raise typer.BadParameter("is for --failure-every", param_hint=_shown(name))
    if "since" in given and "from_history" not in given:
        raise typer.BadParameter("is for --from-history", param_hint="--since")
    if "output" in given:
        others = given - {"trace", "from_history", "since", "output"}
        if others:
            names = ", ".join(sorted(_shown(name) for name in others))
            raise typer.BadParameter(f"simulates nothing: without {names}", param_hint="--output")
    if "rows" in given and "as_json" not in given:
        raise typer.BadParameter("is for --json", param_hint="--rows")


def _is_given(words: typer.Context, name: str) -> bool:
    source = words.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _shown(name: str) -> str:
    return {"trace": "TRACE", "as_json": "--json"}.get(name, f"--{name.replace('_', '-')}")


def _shown_trace(trace: Path | None) -> str:
    return "--from-history" if trace is None else str(trace)


def _read(trace: Path | None, *, is_converted: bool) -> str:
    """The trace in the simulator's form; says on stderr what was made of one in another form.

    Args:
        trace: Its file.
        is_converted: That is what it is read for, so it must be in another form.
    """
    if trace is None:
        raise typer.BadParameter("say which file holds the trace, or --from-history or --generate")
    try:
        if str(trace) == "-":
            text = sys.stdin.read(_MOST_CHARACTERS + 1)
        else:
            # What Excel writes begins with a mark that is no character of the first column's name.
            with trace.open(encoding="utf-8-sig") as file:
                text = file.read(_MOST_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise typer.BadParameter(f"cannot read {trace}: {why}") from error
    if len(text) > _MOST_CHARACTERS:  # or it has no end, as /dev/zero
        raise typer.BadParameter(
            f"cannot read {trace}: it is longer than 512 MiB; read a part of it"
        )
    from gpushare.simulate.imports.read import read

    with _saying(trace):
        imported = read(text)
    if imported is not None:
        return _as_trace(imported)
    if is_converted:
        raise typer.BadParameter("TRACE is in this form already", param_hint="--output")
    return text


def _history(since: str) -> tuple[str, int]:
    """The trace of what has run here, and on how many devices it ran."""
    from gpushare.simulate.imports import history
    from gpushare.simulate.imports.ran_job import import_jobs

    with open_accounts("") as accounts:
        rows = accounts.jobs(make_filter(since=since, me=False, user="", group=None))
    with _saying(None):
        text = _as_trace(import_jobs(history.FORM, history.read(rows)))
    print(f"gpushare: {printable(history.as_it_was(rows))}", file=sys.stderr)
    return text, history.num_devices(rows)


def _as_trace(imported: Imported) -> str:
    from gpushare.simulate.trace import to_csv

    print(f"gpushare: {printable(imported.summary())}", file=sys.stderr)
    return to_csv(imported.jobs, imported.summary())


@contextmanager
def _saying(trace: Path | None) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        print(f"gpushare: {_shown_trace(trace)}: {printable(str(error))}", file=sys.stderr)
        raise typer.Exit(ExitCode.USAGE) from error


def _write(output: Path, text: str) -> None:
    try:
        output.write_text(text)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {output}: {error.strerror or error}") from error


def _generate(
    cluster: str, output: Path | None, *, jobs: int, seed: int, devices: int, load: float
) -> None:
    from gpushare.simulate import clusters, generate
    from gpushare.simulate.trace import to_csv

    try:
        made = generate.generate(cluster, jobs=jobs, seed=seed, devices=devices, load=load)
    except ValueError as error:
        raise typer.BadParameter(f"--generate: {error}") from error
    source = clusters.CLUSTERS[cluster].source
    text = to_csv(made, f"{source}.\n{jobs} jobs, seed {seed}, load {load} on {devices} devices")
    if output is None:
        print(text, end="")
        return
    _write(output, text)


def _show(
    reports: list[dict[str, Any]],
    trace: str,
    machine: dict[str, str],
    *,
    as_json: bool,
    with_rows: bool,
) -> None:
    from gpushare.simulate import runs

    if not as_json:
        from gpushare.simulate.table import table_lines

        show(table_lines(reports, screen_width()))
        return
    left_out = {"leases"} if with_rows else {"leases", "jobs"}
    kept = [
        {name: value for name, value in report.items() if name not in left_out}
        for report in reports
    ]
    whole = {
        "schema_version": runs.SCHEMA_VERSION,
        "trace": trace,
        "machine": machine,
        "policies": kept,
        "first_over": runs.ratios(reports),
    }
    print(json.dumps(whole))
