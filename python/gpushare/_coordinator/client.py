"""Talks to a coordinator from the command line: pure Python, no torch, no compiled module.

One request and one answer over a SEQPACKET socket, in the JSON of ``csrc/wire/codec.h``. Jobs do
not use this: their connection lives in the compiled module.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import json
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from gpushare._coordinator.faults import describe_fault
from gpushare._coordinator.peer_trust import check_listener
from gpushare.errors import CoordinatorUnreachable, GpushareError
from gpushare.users import with_user_names

PROTOCOL_VERSION = 1
MAX_MESSAGE_BYTES = 131072
"""The coordinator's bound on what it reads; its reports are held to the same one."""
ANSWER_SECONDS = 5.0
"""How long a command waits for an answer."""


class RefusedError(GpushareError):
    """The coordinator answered that it will not do this."""


class BarredError(CoordinatorUnreachable):
    """One is there, and this user may not ask it."""


class CoordinatorClient:
    """Asks the first coordinator that answers on one of the given sockets."""

    def __init__(
        self, socket_paths: Sequence[str], timeout_seconds: float = ANSWER_SECONDS
    ) -> None:
        """Remembers where to look; connects at each request.

        Args:
            socket_paths: Sockets in the order of preference.
            timeout_seconds: The longest wait for an answer.
        """
        self._socket_paths = list(socket_paths)
        self._timeout_seconds = timeout_seconds

    def status(self) -> dict[str, Any]:
        """Returns the coordinator's report, as ``gpushare status --json`` prints it."""
        return self._request({"type": "status_request"})

    def why(self, job: int) -> dict[str, Any]:
        """Returns the coordinator's report with ``why``: why a job runs or waits.

        Args:
            job: Its number.

        Raises:
            RefusedError: There is no such job.
        """
        return self._request({"type": "status_request", "why": job})

    def stop(self, *, force: bool) -> dict[str, Any]:
        """Asks the coordinator to end.

        Args:
            force: End although jobs are connected; they go on and start another one.

        Returns:
            Its last report.

        Raises:
            RefusedError: Jobs are connected and ``force`` is false.
        """
        return self._request({"type": "stop", "force": force})

    def set_job(self, job: int, changes: dict[str, Any]) -> dict[str, Any]:
        """Changes a running job.

        Args:
            job: Its number.
            changes: As ``gpushare._settings.arguments.job_changes`` makes them.

        Returns:
            The coordinator's report after it.

        Raises:
            RefusedError: There is no such job, it is another user's, or a value is not possible.
        """
        return self._request({"type": "set", "job": job, **changes})

    def set_policy(self, name: str) -> dict[str, Any]:
        """Changes whom the coordinator serves next.

        Args:
            name: One of those that its report lists.

        Returns:
            The coordinator's report after it.

        Raises:
            RefusedError: No policy is called so, or the coordinator is another user's.
        """
        return self._request({"type": "set_policy", "policy": name})

    def place(self, devices: Sequence[str], used_bytes: Sequence[int] = ()) -> str:
        """Asks on which CUDA device this process is to be, before it starts CUDA.

        Args:
            devices: Those that it sees, by their names.
            used_bytes: What all processes hold on each, where that is known.

        Returns:
            One of them; "" if the coordinator has none of them. Until this process is a job, or
            has ended, others count it there.

        Raises:
            RefusedError: The coordinator is asked too much, or is of an older version.
        """
        used = ",".join(map(str, used_bytes))
        message = {"type": "place", "devices": ",".join(devices), "used_bytes": used}
        return str(self._ask(message, "placed")["device"])

    def connect(self) -> tuple[socket.socket, str]:
        """Connects to the first socket that answers.

        Returns:
            The connection and the path it was made through.

        Raises:
            CoordinatorUnreachable: None answers; the text says what was tried.
        """
        tried = []
        is_barred = False
        for path in self._socket_paths:
            try:
                return self._connect_to(path), path
            except OSError as error:
                tried.append(describe_connect_error(path, error))
                is_barred = is_barred or error.errno == errno.EACCES
        # Where one is there, and this user may not ask it, starting another is no way out.
        cure = "The first job starts one, or: gpushare coordinator start"
        if is_barred:
            cure = "Ask its administrator for access"
        kind = BarredError if is_barred else CoordinatorUnreachable
        raise kind(
            "no coordinator answers. Tried: "
            + "; ".join(tried or ["nothing, no socket is configured"])
            + f". {cure}"
        )

    def _connect_to(self, path: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            # connect() must wait while the listener's queue is full. With a timeout of Python's the
            # socket does not block, and connect() fails at once.
            connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(self._timeout_seconds)
            )
            connection.connect(path)
            connection.settimeout(self._timeout_seconds)
            check_listener(connection, path)
        except OSError:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _connection(self) -> Iterator[tuple[socket.socket, str]]:
        connection, path = self.connect()
        with connection:
            yield connection, path

    def _request(self, message: dict[str, Any]) -> dict[str, Any]:
        answer, path = self._exchange(message)
        return _read_report(answer, path)

    def _ask(self, message: dict[str, Any], kind: str) -> dict[str, Any]:
        """Returns the answer to a question whose answer is no report, but of this kind."""
        answer, path = self._exchange(message)
        try:
            return _read_message(answer, path, kind)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _no_coordinator(path, error) from error

    def _exchange(self, message: dict[str, Any]) -> tuple[bytes, str]:
        with self._connection() as (connection, path):
            try:
                connection.send(encode_message(message))
                # One byte more than allowed, so that a longer answer is seen as such.
                return connection.recv(MAX_MESSAGE_BYTES + 1), path
            except TimeoutError as error:
                raise CoordinatorUnreachable(
                    f"the coordinator at {path} took the question and did not answer within "
                    f"{self._timeout_seconds:g} s. Is it stopped (SIGSTOP)? "
                    "See: gpushare coordinator log"
                ) from error
            except OSError as error:
                raise CoordinatorUnreachable(
                    f"the coordinator at {path} hung up: {error.strerror}"
                ) from error


def encode_message(message: dict[str, Any]) -> bytes:
    """Returns a message as it goes over the socket."""
    return json.dumps({"v": PROTOCOL_VERSION, **message}, separators=(",", ":")).encode()


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return struct.pack("ll", whole, int((seconds - whole) * 1e6))


def describe_connect_error(path: str, error: OSError) -> str:
    """Says in a few words why nobody answers at a path, and what to do where that is known."""
    if error.errno == errno.ENOENT:
        return f"{path} (absent)"
    if error.errno == errno.ECONNREFUSED:
        return f"{path} (nobody listens)"
    if error.errno == errno.EACCES:
        return f"cannot open {path}: permission denied{_group_hint(path)}"
    if isinstance(error, TimeoutError) or error.errno == errno.EAGAIN:
        return f"{path} (did not accept in time)"
    return f"{path} ({error.strerror or error})"


def _group_hint(path: str) -> str:
    for candidate in (path, os.path.dirname(path)):  # noqa: PTH120 - pathlib costs start-up time
        try:
            gid = os.stat(candidate).st_gid  # noqa: PTH116
            name = grp.getgrgid(gid).gr_name
        except (OSError, KeyError):
            continue
        if gid not in {os.getegid(), *os.getgroups()}:
            return f"; it belongs to group {name}, you are not in it"
        return f"; it belongs to group {name}"
    return ""


def _read_report(answer: bytes, path: str) -> dict[str, Any]:
    try:
        report = json.loads(_read_message(answer, path, "status_report")["report"])
        _check_rows(report)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _no_coordinator(path, error) from error
    return dict(report)


def _read_message(answer: bytes, path: str, kind: str) -> dict[str, Any]:
    """Returns a message of this kind.

    Raises:
        RefusedError: It is a refusal.
        CoordinatorUnreachable: It is another, too long, or none.
        ValueError, KeyError, TypeError: It is no message of a coordinator's.
    """
    if not answer:
        raise CoordinatorUnreachable(f"the coordinator at {path} hung up without an answer")
    if len(answer) > MAX_MESSAGE_BYTES:
        raise CoordinatorUnreachable(
            f"the coordinator at {path} sent more than {MAX_MESSAGE_BYTES} bytes in one message"
        )
    message = json.loads(answer)
    found = message["type"]
    if found == "refused":
        raise RefusedError(with_user_names(str(message["reason"])))
    if found != kind:
        wanted = kind.replace("_", " ")
        raise CoordinatorUnreachable(f"{path} answered {found!r} instead of a {wanted}")
    return dict(message)


def _no_coordinator(path: str, error: Exception) -> CoordinatorUnreachable:
    return CoordinatorUnreachable(
        f"what listens at {path} is no coordinator of protocol {PROTOCOL_VERSION}, by its "
        f"answer: {describe_fault(error)}"
    )


def _check_rows(report: Any) -> None:
    """Looks for what all commands rely on. Another program may listen at a configured path.

    Raises:
        KeyError, TypeError: It is missing, or of another kind.
    """
    for device in report["devices"]:
        if not isinstance(device["device"], str):
            raise TypeError(f"a device is called {device['device']!r}")
        for row in device["jobs"]:
            if not isinstance(row["job"], int):
                raise TypeError(f"a job has the number {row['job']!r}")
