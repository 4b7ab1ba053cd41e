"""``gpushare why``: why a job runs, waits or is idle now, and what would change that."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gpushare.cli._screen.line import Line, Span, wrap
from gpushare.cli._screen.terminal import screen_width, show
from gpushare.cli._targets.completion import complete_jobs
from gpushare.cli._targets.jobs import find_job, print_json
from gpushare.errors import GpushareError
from gpushare.printable import printable
from gpushare.users import with_user_names

_PARTS = (
    ("now", "now"),
    ("order", "in line, as if the lease ended now"),
    ("changes", "what would change it"),
)
"""The lists of the coordinator's answer, and how each is called on the screen."""


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="why")(why)


def why(
    job: Annotated[
        str, typer.Argument(help="The job's number, or its name.", autocompletion=complete_jobs)
    ],
    device: Annotated[str, typer.Option(help="The job is on this device.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print it as one JSON object.")] = False,
) -> None:
    """Say why a job runs or waits, who is before it and why, and what would change that."""
    number, client = find_job(job, device)
    answer = client.why(number).get("why")
    if answer is None:
        raise GpushareError(
            f"the coordinator of job {number} is of an earlier version and cannot say why. "
            "The next one can: it starts with the first job after all have ended"
        )
    if as_json:
        print_json(answer)
        return
    show(why_lines(answer, screen_width()))


def why_lines(answer: dict[str, Any], width: int | None) -> list[Line]:
    """Lays out a coordinator's ``why`` as people read it."""
    name = f" ({answer['name']})" if answer["name"] else ""
    says_state = answer["explain"].startswith(f"is {answer['state']}")
    state = "" if says_state else f"is {answer['state']}: "
    first = f"job {answer['job']}{name} {state}{answer['explain']}"
    lines = wrap(_said(first), width, "bold")
    for key, title in _PARTS:
        if answer[key]:
            lines.append([Span(f"{title}:", "bold")])
            for text in answer[key]:
                lines += wrap(_said(f"  {text}"), width, indent="    ")
    return lines + wrap(_said(f"last decision about it: {answer['reason']}"), width)


def _said(text: str) -> str:
    return printable(with_user_names(text))
