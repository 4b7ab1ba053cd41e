"""``gpushare set``: a job's priority, weight, limits and deadline, changed while it runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gpushare._settings.arguments import job_changes
from gpushare.cli._options.settings import check_policy
from gpushare.cli._targets.completion import (
    complete_own_jobs_and_groups,
    complete_policies,
    complete_priorities,
)
from gpushare.cli._targets.jobs import (
    GROUP_MARK,
    JOBS_HELP,
    change_jobs,
    change_policy,
    label,
    print_json,
)
from gpushare.cli.units import format_bytes, format_seconds


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="set")(set_job)


def set_job(  # noqa: PLR0917 - a parameter is an option; typer calls it by names
    job: Annotated[
        str, typer.Argument(help=JOBS_HELP, autocompletion=complete_own_jobs_and_groups)
    ],
    priority: Annotated[
        str | None,
        typer.Option(
            help="guaranteed, interactive, normal or opportunistic.",
            autocompletion=complete_priorities,
        ),
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option(help="The share among the user's jobs of that priority; above 0."),
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help='The most device memory, as 1.5GiB, or "none".')
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(help='How long an iteration may take, waiting included, as 50ms, or "none".'),
    ] = None,
    share_limit: Annotated[
        str | None, typer.Option(help='The most of the device\'s time, 0.01 to 1, or "none".')
    ] = None,
    elastic_limits: Annotated[
        bool | None,
        typer.Option(
            "--elastic-limits/--hard-limits",
            help="Whether both limits give way while no other job wants the rest.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Change the policy of the job's device. Say it without other changes.",
            autocompletion=complete_policies,
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="The job is on this device.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the job's row as JSON.")] = False,
) -> None:
    """Change a running job, from its next turn on: all that is asked for, or nothing."""
    given = {
        "priority": priority,
        "weight": weight,
        "memory_limit": memory_limit,
        "deadline": deadline,
        "share_limit": share_limit,
        "elastic_limits": elastic_limits,
    }
    if policy is not None:
        if any(value is not None for value in given.values()):
            raise typer.BadParameter("--policy is for all jobs of the device: say it alone")
        if job.startswith(GROUP_MARK):
            raise typer.BadParameter("--policy is for all jobs of a device: name one job there")
        check_policy(policy)
        row = change_policy(job, device, policy)
        if as_json:
            print_json(row)
        else:
            print(f"{label(row)}: policy {policy}, for all jobs of {row['device']}")
        return
    if all(value is None for value in given.values()):
        options = (f"--{name.replace('_', '-')}" for name in given)
        *most, last = [*options, "--hard-limits", "--policy"]
        raise typer.BadParameter(f"nothing to change: say {', '.join(most)} or {last}")
    try:
        changes = job_changes(**given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    change_jobs(job, device, changes, print_json if as_json else _tell)


def _tell(row: dict[str, Any]) -> None:
    print(f"{label(row)}: {settings_text(row)}")
    if row.get("deadline_note"):
        print(f"{label(row)}: {row['deadline_note']}")


def settings_text(row: dict[str, Any]) -> str:
    """Returns what may be set of a job, as it is now."""
    limit, deadline = row["memory_limit_bytes"], row["deadline_seconds"]
    share = row.get("share_limit", 0.0)  # a coordinator of an earlier version does not say
    return (
        f"priority {row['priority']}, weight {row['weight']:g}, "
        f"memory limit {format_bytes(limit) if limit else 'none'}, "
        f"deadline {format_seconds(deadline) if deadline else 'none'}, "
        f"share limit {f'{share:.3g}' if share else 'none'}"
        f"{', limits elastic' if row.get('is_elastic') else ''}"
    )
