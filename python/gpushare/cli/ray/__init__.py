"""``gpushare ray``: gangs over the nodes of a Ray cluster."""

from __future__ import annotations

import json
import re
import secrets
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from gpushare.cli.exit_code import ExitCode
from gpushare.errors import CoordinatorUnreachable, GpushareError
from gpushare.extras import check_installed
from gpushare.printable import printable

if TYPE_CHECKING:
    from gpushare.cli.ray.cluster import Cluster, Node
    from gpushare.cli.ray.state import State

_START_SECONDS = 120.0
"""Ray starts a process for each actor, which may take long on a busy node."""
_ANSWER_SECONDS = 10.0
_END_SECONDS = 30.0
_LOOK_SECONDS = 0.2
_SETTLE_SECONDS = 20.0
"""How long coordinators and arbiter may take until they answer."""
_TOKEN_BYTES = 32
_ADDRESS = re.compile(r"auto|(ray://)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_Address = Annotated[str, typer.Option(help="The running cluster, as ray.init has it.")]


def add_to(app: typer.Typer) -> None:
    """Adds the subcommands."""
    group = typer.Typer(help="Gangs over the nodes of a Ray cluster.", no_args_is_help=True)
    for command in (up, status, down):
        group.command()(command)
    app.add_typer(group, name="ray")


def up(
    address: _Address = "auto",
    port: Annotated[
        int,
        typer.Option(help="Where the arbiter listens on the head node.", min=1, max=65535),
    ] = 7070,
) -> None:
    """Start an arbiter on the head node and a coordinator on each node that has none."""
    _check(address)
    from gpushare.cli.ray.cluster import connected
    from gpushare.cli.ray.state import RUNTIME_ENV, lines

    with connected(address) as cluster:
        _start_all(cluster, port)
        state = _settled(cluster)
    print("\n".join(lines(state)))
    _say_what_is_left_alone(state)
    print(f"\nIn each program: ray.init({RUNTIME_ENV})")
    if not state.is_well:
        raise typer.Exit(ExitCode.ERROR)


def status(
    address: _Address = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show arbiter, agents, coordinators and jobs; exit 1 if some of it does not answer."""
    _check(address)
    from gpushare.cli.ray.cluster import connected
    from gpushare.cli.ray.state import lines, look

    with connected(address) as cluster:
        if not cluster.names():
            raise CoordinatorUnreachable(
                "nothing of gpushare runs in this cluster. To start it: gpushare ray up"
            )
        state = look(cluster, _ANSWER_SECONDS)
    print(json.dumps(state.as_json(), indent=2) if as_json else "\n".join(lines(state)))
    if not state.is_well:
        raise typer.Exit(ExitCode.ERROR)


def down(
    address: _Address = "auto",
    force: Annotated[
        bool, typer.Option("--force", help="End them also while jobs are connected.")
    ] = False,
) -> None:
    """End what up has started, and nothing else; exit 4 if jobs are connected."""
    _check(address)
    from gpushare._coordinator.client import RefusedError
    from gpushare.cli.ray.cluster import ARBITER, connected
    from gpushare.cli.ray.state import look

    with connected(address) as cluster:
        names = cluster.names()
        jobs = look(cluster, _ANSWER_SECONDS).jobs if names else []
        if jobs and not force:
            raise RefusedError(
                f"jobs are connected ({printable(', '.join(sorted(set(jobs))))}). With --force "
                "single jobs go on, and gangs over several nodes wait until the next gpushare "
                "ray up"
            )
        handles = {name: cluster.find(name) for name in names}
        answers = cluster.ask(
            {name: each for name, each in handles.items() if each}, "stop", _END_SECONDS
        )
        # An actor that did not answer ends here, and what it has started ends with it.
        for name in names:
            cluster.kill(name)
    ended = [f"the agents of {len(names - {ARBITER})} nodes", *([ARBITER] * (ARBITER in names))]
    print(f"ended: {', '.join(ended)}" if names else "nothing of gpushare ran in this cluster")
    for name, answer in answers.items():
        if isinstance(answer, GpushareError):
            print(f"gpushare: {name}: {printable(str(answer))}", file=sys.stderr)


def _check(address: str) -> None:
    if not _ADDRESS.fullmatch(address):
        raise typer.BadParameter(f"--address: {address!r} is neither auto nor HOST:PORT")
    check_installed("gpushare ray", "ray", "ray")


def _start_all(cluster: Cluster, port: int) -> None:
    """Starts the actors that are missing, and forgets those whose nodes are gone."""
    from gpushare.cli.ray.actors import Agent, Arbiter
    from gpushare.cli.ray.cluster import ARBITER, is_agent

    nodes = cluster.nodes()
    agents = {node.agent for node in nodes}
    for name in cluster.names():
        if is_agent(name) and name not in agents:
            cluster.kill(name)
    # With one that is there already, new agents get its token, and not this one.
    token = secrets.token_hex(_TOKEN_BYTES)
    arbiter = cluster.start(ARBITER, Arbiter, nodes[0], _listen_at(nodes[0], port), token)
    answer = cluster.ask({ARBITER: arbiter}, "settings", _START_SECONDS)[ARBITER]
    if isinstance(answer, GpushareError):
        cluster.kill(ARBITER)
        raise GpushareError(f"the arbiter did not start on {nodes[0].shown}: {answer}")
    handles = {node.agent: cluster.start(node.agent, Agent, node, *answer) for node in nodes}
    answers = cluster.ask(handles, "report", _START_SECONDS)
    for node in nodes:
        error = answers[node.agent]
        if isinstance(error, GpushareError):
            print(f"gpushare: {node.shown}: {printable(str(error))}", file=sys.stderr)


def _listen_at(node: Node, port: int) -> str:
    host = f"[{node.address}]" if ":" in node.address else node.address
    return f"tcp:{host}:{port}"


def _settled(cluster: Cluster) -> State:
    """Returns how all stand once they answer, or after a while."""
    from gpushare.cli.ray.state import look

    until = time.monotonic() + _SETTLE_SECONDS
    while not (state := look(cluster, _ANSWER_SECONDS)).is_settled and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    return state


def _say_what_is_left_alone(state: State) -> None:
    for each in state.nodes:
        for row in each.coordinators:
            if row["pid"] and not row["is_own"]:
                print(
                    f"gpushare: {each.node.shown}: a coordinator answers at {row['socket']} "
                    "already, and was left alone. Ranks on that node need the arbiter "
                    f"{state.arbiter['address']} and its token in the settings of that coordinator",
                    file=sys.stderr,
                )
