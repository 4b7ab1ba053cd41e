"""Jobs end by the thousand while their coordinator is killed again and again.

    python -m tests.hostile.account_kills --jobs 10000 --kills 200

A job is a forked process that says hello, registers, and ends once it has its answer. Each such job
must be listed once in the end. An archive is filled before each kill, as an administrator would do
once a day, since the journal keeps a part only.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from gpushare._accounts.database import Database
from gpushare._accounts.folders import read_journals
from gpushare._accounts.journal import Lines
from gpushare._coordinator.client import CoordinatorClient
from gpushare.errors import CoordinatorUnreachable
from tests.hostile.peer import Peer

DAEMON = Path(__file__).parents[2] / "python/gpushare/bin/gpushared"
PATIENCE_SECONDS = 60.0
BUDGET_BYTES = 1 << 20
AT_ONCE = 8
"""How many jobs there are at the same time."""


class Coordinator:
    """A coordinator that keeps accounts in a folder."""

    def __init__(self, folder: Path, accounts: Path) -> None:
        """Starts it."""
        self.socket = str(folder / "sock")
        words = ["--socket", self.socket, "--capacity", "64MiB", "--linger-s", "never"]
        words += ["--accounts-folder", str(accounts), "--accounts-budget", str(BUDGET_BYTES)]
        words += ["--log-level", "warn", "--log-file", str(folder / "log")]
        self._process = subprocess.Popen([str(DAEMON), *words])
        end = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            assert self._process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end, "it does not answer"
            time.sleep(0.005)

    def _answers(self) -> bool:
        try:
            CoordinatorClient([self.socket]).status()
        except CoordinatorUnreachable:
            return False
        return True

    def end(self, number: int) -> None:
        """Ends it by this signal, and waits for its end."""
        self._process.send_signal(number)
        self._process.wait(PATIENCE_SECONDS)


class Jobs:
    """Forked jobs, a few at a time."""

    def __init__(self) -> None:
        """There are none."""
        self._pids: dict[int, str] = {}
        self.registered: set[str] = set()

    def start(self, name: str, socket: str) -> None:
        """Forks a job, after the oldest one if there are too many."""
        if len(self._pids) >= AT_ONCE:
            self._wait(next(iter(self._pids)))
        pid = os.fork()
        if pid == 0:
            os._exit(_be_a_job(name, socket))
        self._pids[pid] = name

    def wait(self) -> None:
        """Waits until all have ended."""
        while self._pids:
            self._wait(next(iter(self._pids)))

    def _wait(self, pid: int) -> None:
        _, status = os.waitpid(pid, 0)
        name = self._pids.pop(pid)
        if status == 0:
            self.registered.add(name)


def _be_a_job(name: str, socket: str) -> int:
    try:
        peer = Peer(socket)
        answers = (peer.hello(), peer.register(name=name))
    except OSError:
        return 1
    return 0 if all(answer is not None for answer in answers) else 1


def names_in(accounts: Path) -> list[str]:
    """The names of the jobs whose whole lines are in the journals."""
    texts = map(_read, accounts.glob("*.jsonl"))
    lines = [line for text in texts for line in text.decode(errors="replace").splitlines()]
    return [json.loads(line)["name"] for line in lines if line.endswith("}")]


def _read(path: Path) -> bytes:
    """A journal; nothing where the coordinator has just removed it, as its oldest."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


class Outcome(NamedTuple):
    """What a run came to."""

    num_registered: int
    num_cut_off: int
    """Listed as "lost": they ended while there was no coordinator."""
    lost: set[str]
    """Registered and not listed."""
    doubled: set[str]
    unknown: set[str]
    most_bytes: int
    """The most that the journals ever had."""


def run(num_jobs: int, num_kills: int, seed: int = 1) -> Outcome:
    """Lets so many jobs end, with so many kills among them."""
    rng = random.Random(seed)
    kills = set(rng.sample(range(num_jobs), num_kills))
    jobs = Jobs()
    doubled: set[str] = set()
    most_bytes = 0
    with tempfile.TemporaryDirectory(prefix="gpushare-") as text:
        folder = Path(text)
        accounts = folder / "state" / "accounts"
        archive = Database(str(folder / "archive.db"))
        coordinator = Coordinator(folder, accounts)

        def collect() -> dict[str, str]:
            """Says of each job that is listed how it ended."""
            nonlocal most_bytes
            most_bytes = max(most_bytes, sum(len(_read(path)) for path in accounts.glob("*")))
            for journal in read_journals([accounts], os.geteuid())[0]:
                archive.add(Lines(journal, os.geteuid()).rows)
            counted = collections.Counter(names_in(accounts))
            doubled.update(name for name, number in counted.items() if number > 1)
            rows = archive.select('SELECT name, "end" FROM parts')
            return {row["name"]: row["end"] for row in rows}

        try:
            for index in range(num_jobs):
                jobs.start(f"job-{index}", coordinator.socket)
                if index in kills:
                    collect()
                    coordinator.end(signal.SIGKILL)
                    coordinator = Coordinator(folder, accounts)
        finally:
            jobs.wait()
            coordinator.end(signal.SIGTERM)
        kept = collect()
        twice = "SELECT name FROM parts GROUP BY name HAVING count(*) > 1"
        doubled.update(row["name"] for row in archive.select(twice))
        archive.close()
    return Outcome(
        num_registered=len(jobs.registered),
        num_cut_off=sum(end == "lost" for end in kept.values()),
        lost=jobs.registered - kept.keys(),
        doubled=doubled,
        unknown=kept.keys() - {f"job-{index}" for index in range(num_jobs)},
        most_bytes=most_bytes,
    )


def main() -> int:
    """Prints what a run came to; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    outcome = run(wanted.jobs, wanted.kills, wanted.seed)
    print(outcome)
    is_good = not (outcome.lost or outcome.doubled or outcome.unknown)
    return 0 if is_good and outcome.most_bytes <= BUDGET_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
