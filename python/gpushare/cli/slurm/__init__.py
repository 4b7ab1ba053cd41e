"""``gpushare slurm print-config``: what Slurm's configuration needs for jobs that share GPUs."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from gpushare._settings.config import daemon_path
from gpushare.admin.gpus import find_gpus
from gpushare.admin.program import default_program
from gpushare.cli.slurm import fragments
from gpushare.cli.slurm.arbiter_fragments import (
    COORDINATOR_UNIT_PATH,
    TOKEN_FILE,
    UNIT_PATH,
    Arbiter,
)


class Part(str, Enum):
    """A file, or a part of one."""

    SLURM_CONF = "slurm.conf"
    GRES_CONF = "gres.conf"
    PROLOG = "prolog"
    TASK_PROLOG = "task-prolog"
    ARBITER_SERVICE = "arbiter.service"
    ARBITER_CONF = "arbiter.conf"


_PLACES = {
    Part.SLURM_CONF: "lines for /etc/slurm/slurm.conf of all hosts",
    Part.GRES_CONF: "lines for /etc/slurm/gres.conf of the nodes",
    Part.PROLOG: "/etc/slurm/gpushare_prolog.sh of the nodes, mode 0755",
    Part.TASK_PROLOG: "/etc/slurm/gpushare_task_prolog.sh of the nodes, mode 0755",
    Part.ARBITER_SERVICE: f"{UNIT_PATH} of one host",
    Part.ARBITER_CONF: f"{COORDINATOR_UNIT_PATH} of the nodes with gpushare admin install",
}


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
    *,
    shards: Annotated[
        int, typer.Option(help="How many jobs may share a GPU.", min=1, max=1024)
    ] = 4,
    gpus: Annotated[
        int | None, typer.Option(help="GPUs of a node; by default those of this one.", min=1)
    ] = None,
    group: Annotated[
        str, typer.Option(help="The group that may use the coordinators, as for admin install.")
    ] = "gpu",
    arbiter: Annotated[
        str,
        typer.Option(help="tcp:HOST:PORT of the cluster's arbiter, for jobs on several nodes."),
    ] = "",
    arbiter_token_file: Annotated[
        str, typer.Option(help="The file of its secret, which each node has a copy of.")
    ] = TOKEN_FILE,
) -> None:
    """Print lines for slurm.conf and gres.conf, the scripts Prolog and TaskProlog, and units."""
    num = len(find_gpus()) if gpus is None else gpus
    if num == 0 and part in {None, Part.SLURM_CONF, Part.GRES_CONF}:
        raise typer.BadParameter("this machine has no GPU: say by --gpus how many a node has")
    named = _named(arbiter, arbiter_token_file)
    program = default_program(daemon_path())
    texts = {
        Part.SLURM_CONF: fragments.slurm_conf(num, shards),
        Part.GRES_CONF: fragments.gres_conf(num, shards),
        Part.PROLOG: fragments.prolog(group, program, named),
        Part.TASK_PROLOG: fragments.task_prolog(named),
    }
    if named is not None:
        texts[Part.ARBITER_SERVICE] = named.unit(program)
        texts[Part.ARBITER_CONF] = named.coordinator_unit()
    if part is None:
        for each, text in texts.items():
            print(f"##### {each.value}: {_PLACES[each]}\n\n{text}")
    elif part in texts:
        print(texts[part], end="")
    else:
        raise typer.BadParameter(f"{part.value} needs --arbiter")


def _named(address: str, token_file: str) -> Arbiter | None:
    """Returns the arbiter that the options name, if they name one."""
    if not address:
        return None
    try:
        return Arbiter(address, token_file)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
