"""A running Ray cluster: its nodes, and the actors of gpushare in it."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any, NamedTuple

from gpushare.errors import CoordinatorUnreachable, GpushareError

NAMESPACE = "gpushare"
"""Of the actors, so that programs' actors may have any name."""
ARBITER = "arbiter"
_AGENT = "agent-"
_HEAD = "node:__internal_head__"
"""A resource that Ray gives to the head node alone."""
_AS_OFTEN_AS_NEEDED = -1
"""For ``max_restarts``."""

_CONNECT_SECONDS = 5.0

_Handle = Any
"""An actor's handle: Ray has several types of them."""


class Node(NamedTuple):
    """A node that is alive."""

    id: str
    address: str
    """Its IP address, as other nodes reach it."""
    is_head: bool

    @property
    def agent(self) -> str:
        """The name of its agent."""
        return _AGENT + self.id

    @property
    def shown(self) -> str:
        """Its address and the beginning of its number: several may have one address."""
        return f"{self.address} {self.id[:8]}{' (head)' if self.is_head else ''}"


class Cluster:
    """A connection to a cluster."""

    def __init__(self, ray: Any) -> None:
        """``ray``: the module, which is connected."""
        self._ray = ray

    def nodes(self) -> list[Node]:
        """Returns the nodes that are alive, the head first."""
        rows = [row for row in self._ray.nodes() if row["Alive"]]
        found = [
            Node(row["NodeID"], row["NodeManagerAddress"], _HEAD in row["Resources"])
            for row in rows
        ]
        return sorted(found, key=lambda node: (not node.is_head, node.address, node.id))

    def names(self) -> set[str]:
        """Returns the names of the actors of gpushare, also of those that Ray starts again now."""
        named = self._ray.util.list_named_actors(all_namespaces=True)
        return {each["name"] for each in named if each["namespace"] == NAMESPACE}

    def find(self, name: str) -> _Handle | None:
        """Returns an actor of gpushare; None: there is none of that name."""
        try:
            return self._ray.get_actor(name, namespace=NAMESPACE)
        except ValueError:
            return None

    def start(self, name: str, kind: type, node: Node, *arguments: str) -> _Handle:
        """Returns the actor of a name, which is started if it is not there.

        It needs no CPU of Ray's, stays when the program that started it ends, and is started again
        on the same node when its process has ended.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = self._ray.remote(kind).options(
            name=name,
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=_AS_OFTEN_AS_NEEDED,
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
        )
        return options.remote(*arguments)

    def ask(
        self, handles: Mapping[str, _Handle], method: str, seconds: float
    ) -> dict[str, Any | GpushareError]:
        """Asks actors at the same time.

        Args:
            handles: By any names.
            method: What to call.
            seconds: The longest wait for all of them.

        Returns:
            By the same names, what they answer, or an error that says in a line why one does not.
        """
        asked = {name: getattr(each, method).remote() for name, each in handles.items()}
        if asked:
            self._ray.wait(list(asked.values()), num_returns=len(asked), timeout=seconds)
        return {name: self._answer(each) for name, each in asked.items()}

    def kill(self, name: str) -> None:
        """Ends an actor for good; Ray does not start it again."""
        handle = self.find(name)
        if handle is not None:
            self._ray.kill(handle, no_restart=True)

    def _answer(self, reference: Any) -> Any | GpushareError:
        from ray.exceptions import GetTimeoutError, RayError

        try:
            return self._ray.get(reference, timeout=0)
        except GetTimeoutError:
            return CoordinatorUnreachable("it does not answer")
        except RayError as error:
            # Ray's text has a stack, and the error itself in its last line.
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return GpushareError(lines[-1] if lines else type(error).__name__)


def is_agent(name: str) -> bool:
    """Whether an actor of gpushare is a node's agent."""
    return name.startswith(_AGENT)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connects to a running cluster, and disconnects at the end.

    Ray prints what happens to nodes and workers meanwhile. That goes to stderr, since stdout may be
    a JSON object.

    Args:
        address: As ``ray.init`` has it.

    Raises:
        CoordinatorUnreachable: There is none.
        GpushareError: Ray refuses, as where its versions differ.
    """
    _check_listener(address)
    import ray

    with redirect_stdout(sys.stderr):
        yield from _connected(ray, address)


def _check_listener(address: str) -> None:
    """Ray itself tries for minutes to reach an address where nobody listens."""
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise CoordinatorUnreachable(f"no Ray cluster answers at {address}: {error}") from error


def _connected(ray: Any, address: str) -> Iterator[Cluster]:
    try:
        ray.init(
            address,
            namespace=NAMESPACE,
            logging_level=logging.ERROR,
            log_to_driver=False,
        )
    except (ConnectionError, TimeoutError) as error:
        raise CoordinatorUnreachable(
            f"no Ray cluster answers at {address}: {_first_line(error)}"
        ) from error
    except (RuntimeError, ValueError) as error:
        raise GpushareError(f"Ray does not connect to {address}: {_first_line(error)}") from error
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
