"""What of gpushare runs in a Ray cluster, and how commands say it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from gpushare.cli._status.table import align
from gpushare.cli.ray.cluster import ARBITER, Cluster, Node, is_agent
from gpushare.errors import GpushareError
from gpushare.integrations.ray_nodes import HOOK
from gpushare.printable import printable

RUNTIME_ENV = f'runtime_env={{"worker_process_setup_hook": "{HOOK}"}}'
"""The argument of ``ray.init`` by which a program's workers become jobs with the arbiter."""


@dataclass(kw_only=True)
class NodeState:
    """A node, its agent and its coordinators."""

    node: Node
    problem: str = ""
    """Why its agent does not answer; "": it does."""
    coordinators: list[dict[str, Any]] = field(default_factory=list)
    """As ``Agent.report`` has them."""

    @property
    def is_well(self) -> bool:
        """Whether agent and coordinators answer."""
        return not self.problem and all(each["pid"] for each in self.coordinators)


@dataclass(kw_only=True)
class State:
    """All of it."""

    arbiter: dict[str, Any]
    """As ``Arbiter.report`` has it."""
    nodes: list[NodeState]

    @property
    def is_well(self) -> bool:
        """Whether everything answers."""
        return self.is_settled and all(each.is_well for each in self.nodes)

    @property
    def is_settled(self) -> bool:
        """Whether all answer that an actor has started: waiting longer would not help."""
        well = [each.is_well for each in self.nodes if not each.problem]
        return bool(self.arbiter["answers"]) and all(well)

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs that need what ``up`` has started.

        They are those of the agents' coordinators, and ranks whose coordinator a rank has started:
        they need the arbiter.
        """
        rows = [row for node in self.nodes for row in node.coordinators]
        return [
            job["name"]
            for row in rows
            if not row["is_of_system"]
            for job in row["jobs"]
            if row["is_own"] or job["gang"]
        ]

    def as_json(self) -> dict[str, Any]:
        """Returns what ``status --json`` prints."""
        nodes = [
            {**each.node._asdict(), "problem": each.problem, "coordinators": each.coordinators}
            for each in self.nodes
        ]
        return {**asdict(self), "nodes": nodes}


def look(cluster: Cluster, seconds: float) -> State:
    """Asks arbiter and agents.

    Args:
        cluster: Where.
        seconds: The longest wait for all of them.
    """
    names, nodes = cluster.names(), cluster.nodes()
    handles = {name: cluster.find(name) for name in names if name == ARBITER or is_agent(name)}
    here = {ARBITER} | {node.agent for node in nodes}
    answers = cluster.ask(
        {name: each for name, each in handles.items() if each and name in here}, "report", seconds
    )
    arbiter = answers.get(ARBITER, GpushareError("it was not started"))
    if isinstance(arbiter, GpushareError):
        arbiter = {"address": "", "answers": False, "why": str(arbiter)}
    return State(
        arbiter=arbiter, nodes=[_state_of(node, answers.get(node.agent)) for node in nodes]
    )


def _state_of(node: Node, answer: list[dict[str, Any]] | GpushareError | None) -> NodeState:
    if answer is None:
        return NodeState(node=node, problem="no agent, gpushare ray up starts one")
    if isinstance(answer, GpushareError):
        return NodeState(node=node, problem=str(answer))
    return NodeState(node=node, coordinators=answer)


def lines(state: State) -> list[str]:
    """Returns the lines of ``gpushare ray status``."""
    arbiter = state.arbiter
    why = "" if arbiter["answers"] else f" does not answer: {arbiter['why']}"
    text = [f"arbiter{' at ' if arbiter['address'] else ''}{arbiter['address']}{why}"]
    rows: list[tuple[str, ...]] = [("NODE", "AGENT", "DEVICE", "COORDINATOR", "SOCKET")]
    for each in state.nodes:
        if each.problem:
            rows.append((each.node.shown, each.problem, "", "", ""))
        for row in each.coordinators:
            device = row["device"] or "-"
            rows.append((each.node.shown, "answers", device, _whose(row), row["socket"]))
    text += align(_printable(rows))
    jobs: list[tuple[str, ...]] = [("NODE", "DEVICE", "JOB", "NAME", "STATE", "GANG")]
    for each in state.nodes:
        for row in each.coordinators:
            for job in row["jobs"]:
                cells = (job["device"], str(job["job"]), job["name"], job["state"])
                jobs.append((each.node.shown, *cells, job["gang"] or "-"))
    text += ["", *align(_printable(jobs))] if len(jobs) > 1 else ["no jobs"]
    warnings = {
        f"warning: {each.node.shown}: {printable(warning)}"
        for each in state.nodes
        for row in each.coordinators
        for warning in row["warnings"]
    }
    return [printable(text[0]), *text[1:], *sorted(warnings)]


def _whose(row: dict[str, Any]) -> str:
    if not row["pid"]:
        return "does not answer"
    if row["is_own"]:
        return f"pid {row['pid']}"
    whose = "the administrator's" if row["is_of_system"] else "not the agent's"
    return f"pid {row['pid']}, {whose}"


def _printable(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [tuple(printable(cell) for cell in row) for row in rows]
