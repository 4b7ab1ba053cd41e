"""Job processes of a benchmark: start, wait until ready, let go, collect the result.

Start-up (imports, building the model, warming up) is kept out of every timing: a job says when
it is ready and waits for a line. Processes that this module started are ended by it, by their
pid.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpushare._coordinator.client import CoordinatorClient

ROOT = Path(__file__).resolve().parent.parent
WAIT_SECONDS = 300.0


class JobProcess:
    """One `benchmarks.job`, as a context manager that leaves no process behind."""

    def __init__(
        self,
        *arguments: str,
        env: dict[str, str] | None = None,
        command: list[str] | None = None,
        module: str = "benchmarks.job",
    ) -> None:
        """Starts it. `command` replaces "python -m <module>"; `env` is laid over this process's."""
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115  # closed in __exit__
        words = [*(command or [sys.executable, "-m", module]), *arguments]
        self.process = self._start(words, job_environment(env), self._errors)
        self.ready: dict[str, Any] = {}

    @staticmethod
    def _start(command: list[str], env: dict[str, str], errors: IO[str]) -> Any:
        """The process: a `subprocess.Popen`, or what has the same methods."""
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=env,
            cwd=ROOT,
        )

    @property
    def pid(self) -> int:
        """The process's number."""
        pid: int = self.process.pid
        return pid

    def errors(self) -> str:
        """What it wrote to stderr so far."""
        self._errors.seek(0)
        return self._errors.read()

    def say(self) -> dict[str, Any]:
        """Its next line.

        Raises:
            RuntimeError: if it ended instead, with what it wrote to stderr.
        """
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if line.startswith("{"):
                said: dict[str, Any] = json.loads(line)
                return said
        self.process.wait(WAIT_SECONDS)
        raise RuntimeError(f"job ended with {self.process.returncode}: {self.errors()[-4000:]}")

    def wait_ready(self) -> JobProcess:
        """Blocks until it is ready to train."""
        self.ready = self.say()
        return self

    def go(self) -> JobProcess:
        """Lets it train."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self

    def has_said(self) -> bool:
        """Whether it has something to say, or has ended: the next `say` does not wait.

        For a job that says one line and waits: what is read ahead is not looked at.
        """
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def outcome(self) -> dict[str, Any]:
        """Its last line; with --linger the process goes on until its stdin is closed."""
        while "done" not in (said := self.say()):
            pass
        return said

    def result(self) -> dict[str, Any]:
        """Its last line, and its end."""
        said = self.outcome()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(WAIT_SECONDS)
        return said

    def __enter__(self) -> JobProcess:
        """The process runs already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends what has not ended by itself; what it wrote to stderr is shown with an error."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_SECONDS)
        if error is not None and self.errors():
            print(f"stderr of job {self.pid}:\n{self.errors()[-4000:]}", file=sys.stderr)
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def cpu_seconds(pid: int) -> float:
    """Returns the time that the process has used so far, of all cores."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def outcomes_together(
    arguments: Iterable[Sequence[str]], env: dict[str, str], module: str
) -> list[dict[str, Any]]:
    """The last lines of jobs that go at once, one thread each; they end after the last of them."""
    with contextlib.ExitStack() as stack:
        one_thread = env | {"OMP_NUM_THREADS": "1"}
        jobs = [
            stack.enter_context(JobProcess(*each, "--linger", env=one_thread, module=module))
            for each in arguments
        ]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        return [job.outcome() for job in jobs]


def job_environment(env: dict[str, str] | None) -> dict[str, str]:
    """This process's environment with `env` laid over it, and this checkout's modules.

    GPUSHARE_PACKAGE names another folder that holds the package, built for another torch.
    """
    environment = {**os.environ, "GPUSHARE_REPORT": "0", **(env or {})}
    # Jobs that were started from here by chance are no processes of one program.
    environment.pop("GPUSHARE_PROGRAM", None)
    path = [str(ROOT), _package_folder(environment), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(p for p in path if p)
    return environment


def _package_folder(environment: Mapping[str, str] = os.environ) -> str:
    return environment.get("GPUSHARE_PACKAGE") or str(ROOT / "python")


@contextlib.contextmanager
def private_coordinator(**settings: str) -> Iterator[dict[str, str]]:
    """Environment for jobs that meet at a coordinator of their own, stopped at the end.

    `settings` are GPUSHARE_* names in lower case without the prefix, e.g. capacity="1GiB".
    """
    with (
        tempfile.TemporaryDirectory(prefix="gpushare-") as folder,
        tempfile.TemporaryDirectory(prefix="gpushare-state-") as state,  # its accounts are nobody's
    ):
        env = {"GPUSHARE_SOCKET": str(Path(folder) / "sock"), "GPUSHARE_LINGER": "1s"}
        env["XDG_STATE_HOME"] = state
        env |= {f"GPUSHARE_{name.upper()}": value for name, value in settings.items()}
        try:
            yield env
        finally:
            stop_coordinator(env)


def gpushare_command(*arguments: str) -> list[str]:
    """The command line of this checkout's gpushare."""
    return [sys.executable, "-m", "gpushare", *arguments]


def _client(env: dict[str, str]) -> CoordinatorClient:
    """For the coordinator whose socket the environment names."""
    # The package may be in the folder of a build. It is not imported at the top, since a
    # benchmark's own process must not become a job.
    if _package_folder() not in sys.path:
        sys.path.append(_package_folder())
    from gpushare._coordinator.client import CoordinatorClient

    return CoordinatorClient([env["GPUSHARE_SOCKET"]], WAIT_SECONDS)


def read_status(env: dict[str, str]) -> dict[str, Any]:
    """What the coordinator says of itself and its jobs; empty while there is none."""
    client = _client(env)
    from gpushare.errors import CoordinatorUnreachable

    try:
        return client.status()
    except CoordinatorUnreachable:
        return {}


def stop_coordinator(env: dict[str, str]) -> None:
    """Stops the coordinator, if there is one, and waits until its process is gone."""
    if not (report := read_status(env)):
        return
    from gpushare.errors import CoordinatorUnreachable

    with contextlib.suppress(ProcessLookupError):  # it ends by itself
        process = os.pidfd_open(report["coordinator"]["pid"])
        try:
            with contextlib.suppress(CoordinatorUnreachable):  # likewise, a moment later
                _client(env).stop(force=True)
            if not select.select([process], [], [], WAIT_SECONDS)[0]:
                raise TimeoutError(f"{report['coordinator']} has not ended")
        finally:
            os.close(process)
