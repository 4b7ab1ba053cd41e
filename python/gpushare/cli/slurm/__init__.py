"""``gpushare slurm print-config``: what Slurm's configuration needs for jobs that share GPUs."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from gpushare._settings.config import daemon_path
from gpushare.admin.gpus import find_gpus
from gpushare.admin.program import default_program
from gpushare.cli.slurm import fragments


class Part(str, Enum):
    """A file, or a part of one."""

    SLURM_CONF = "slurm.conf"
    GRES_CONF = "gres.conf"
    PROLOG = "prolog"
    TASK_PROLOG = "task-prolog"


def add_to(app: typer.Typer) -> None:
    """Adds the subcommands."""
    group = typer.Typer(help="Share the GPUs of a Slurm cluster.", no_args_is_help=True)
    group.callback()(_nothing)  # so that a single subcommand keeps its name
    group.command(name="print-config")(print_config)
    app.add_typer(group, name="slurm")


def _nothing() -> None: ...


def print_config(
    part: Annotated[
        Part | None, typer.Argument(help="Print this part alone, as it stands in its file.")
    ] = None,
    shards: Annotated[
        int, typer.Option(help="How many jobs may share a GPU.", min=1, max=1024)
    ] = 4,
    gpus: Annotated[
        int | None, typer.Option(help="GPUs of a node; by default those of this one.", min=1)
    ] = None,
    group: Annotated[
        str, typer.Option(help="The group that may use the coordinators, as for admin install.")
    ] = "gpu",
) -> None:
    """Print lines for slurm.conf and gres.conf, and the scripts Prolog and TaskProlog."""
    num = len(find_gpus()) if gpus is None else gpus
    if num == 0 and part not in {Part.PROLOG, Part.TASK_PROLOG}:
        raise typer.BadParameter("this machine has no GPU: say by --gpus how many a node has")
    texts = {
        Part.SLURM_CONF: fragments.slurm_conf(num, shards),
        Part.GRES_CONF: fragments.gres_conf(num, shards),
        Part.PROLOG: fragments.prolog(group, default_program(daemon_path())),
        Part.TASK_PROLOG: fragments.TASK_PROLOG,
    }
    if part is not None:
        print(texts[part], end="")
        return
    for each, text in texts.items():
        print(f"##### {each.value}: {fragments.PLACES[each.value]}\n\n{text}")
