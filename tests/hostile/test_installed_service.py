"""The service that `gpushare admin install` sets up: two members, one who is none, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hostile.installed_box import (
    GROUP,
    JOB_SECONDS,
    PROGRAM,
    UNIT,
    USERS,
    InstalledBox,
    NoBoxError,
)
from tests.hostile.shared_box import PATIENCE_SECONDS, shared_box

if TYPE_CHECKING:
    import subprocess

    from tests.hostile.unit_runner import UnitRunner

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can install a service"),
    pytest.mark.slow,
]

ALICE, BOB, CAROL = USERS
CONFIG = "/etc/gpushare/config.toml"

JOB = """
import os, sys
import gpushare, torch
torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
job = gpushare.register(model, optimizer, priority={priority!r})

def train(iterations=3):
    for _ in range(iterations):
        model(torch.ones(4, 32)).sum().backward()
        optimizer.step()
    print(job.is_managed, flush=True)

train()
"""

LIMITS = f"""
[user.{ALICE}]
weight = 2
[user.{BOB}]
max_priority = "interactive"
max_jobs = 1
memory_limit = "16MiB"
"""


@contextlib.contextmanager
def empty_box() -> Iterator[InstalledBox]:
    try:
        box = InstalledBox()
    except NoBoxError as error:
        pytest.skip(f"a machine of its own cannot be made here: {error}")
    try:
        yield box
    finally:
        box.close()


@contextlib.contextmanager
def serving_box() -> Iterator[tuple[InstalledBox, UnitRunner]]:
    """A box on which the service is installed, has two members with limits, and runs."""
    with empty_box() as box:
        box.install()
        for user in (ALICE, BOB):
            box.run("usermod", "-aG", GROUP, user)
        box.run("sh", "-c", f"echo '{LIMITS}' >> {CONFIG}")
        unit = box.unit()
        try:
            unit.start()
            yield box, unit
        finally:
            unit.stop()


def line_of(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline().strip()
    assert line, process.communicate()[1]
    return line


def go_on(process: subprocess.Popen[str]) -> None:
    """Lets a job go on that waits for input."""
    process.stdin.write("\n")
    process.stdin.flush()


def end(process: subprocess.Popen[str]) -> str:
    """Lets a job that waits for input end, and returns what it wrote to its errors."""
    errors = process.communicate("\n", timeout=JOB_SECONDS)[1]
    assert process.returncode == 0, errors
    return errors


def jobs_of(box: InstalledBox) -> dict[str, dict]:
    """The rows of the status that a member sees, by the names of the jobs' users."""
    (device,) = json.loads(box.gpushare_as(ALICE, "status", "--json").stdout)["devices"]
    names = {int(box.run("id", "-u", user).stdout): user for user in USERS}
    return {names[job["uid"]]: job for job in device["jobs"]}


def history_of(box: InstalledBox, user: str) -> list[dict]:
    """The accounts that a user sees."""
    ended = box.gpushare_as(user, "history", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def own_folders(box: InstalledBox) -> list[str]:
    """Where coordinators that users started for themselves would have their sockets."""
    return re.findall(r"^gpushare-\d+$", box.run("ls", "/tmp").stdout, re.MULTILINE)


def test_two_members_share_within_their_limits_and_a_third_is_told() -> None:
    with serving_box() as (box, unit):
        assert Path(f"/proc/{unit.pid}/exe").resolve().name == "gpushared"
        status = Path(f"/proc/{unit.pid}/status").read_text()
        (uid,) = {int(word) for word in status.split("Uid:")[1].split("\n")[0].split()}
        assert uid == int(box.run("id", "-u", "gpushared").stdout), "and not root"

        waiting = JOB + "input(); train(20); input()"
        alice = box.start_as(ALICE, waiting.format(priority="guaranteed"))
        bob = box.start_as(BOB, waiting.format(priority="interactive"))
        assert (line_of(alice), line_of(bob)) == ("True", "True")
        # Both jobs train at once, in one coordinator.
        for job in (alice, bob):
            go_on(job)
        assert (line_of(alice), line_of(bob)) == ("True", "True")
        rows = jobs_of(box)
        assert rows.keys() == {ALICE, BOB}
        assert {name: row["priority"] for name, row in rows.items()} == {
            ALICE: "normal",
            BOB: "interactive",
        }

        job = str(rows[BOB]["job"])
        for words in (
            ("pause", job),
            ("set", job, "--weight", "3"),
            ("limit", job, "1GiB"),
            ("policy", "fifo"),
            ("coordinator", "stop", "--force"),
        ):
            refused = box.gpushare_as(ALICE, *words)
            assert refused.returncode == 4, (words, refused.stderr)
            assert "may not" in refused.stderr
        for words in (("pause", job), ("resume", job), ("policy", "fifo")):
            done = box.gpushare_as("root", *words)
            assert done.returncode == 0, (words, done.stderr)
        # Bob may change his own job, up to what is his.
        assert box.gpushare_as(BOB, "set", job, "--priority", "opportunistic").returncode == 0
        refused = box.gpushare_as(BOB, "set", job, "--priority", "guaranteed")
        assert refused.returncode == 4
        assert "may have at most priority interactive, not guaranteed" in refused.stderr

        assert "may have at most priority normal, not guaranteed" in end(alice)
        end(bob)
        # The administrator may stop the coordinator, which is then not started again.
        assert box.gpushare_as("root", "coordinator", "stop").returncode == 0
        assert unit.process.wait(PATIENCE_SECONDS) == 0
        assert unit.num_starts == 1

        # What the service has kept of the jobs can be read without it.
        kept = {row["user"]: row for row in history_of(box, ALICE)}
        assert kept.keys() == {ALICE, BOB}
        assert kept[ALICE]["command"]
        assert kept[BOB]["command"] is None, "it is another user's"
        assert kept[BOB]["iterations"] >= 20
        assert {row["user"]: bool(row["command"]) for row in history_of(box, "root")} == {
            ALICE: True,
            BOB: True,
        }
        assert history_of(box, CAROL) == []


def test_limits_of_the_file_hold_in_the_service() -> None:
    with serving_box() as (box, _):
        bob = box.start_as(BOB, JOB.format(priority="normal") + "input()")
        assert line_of(bob) == "True"
        output, errors = box.run_as(BOB, JOB.format(priority="normal"))
        assert output == "False\n"
        assert f"{BOB} has 1 jobs here, which is the most he may have (max_jobs)" in errors
        end(bob)

        large = "import gpushare, torch\ngpushare.register()\ntorch.ones(6 << 20)"
        output, errors = box.run_as(BOB, large)
        assert f"the memory_limit of {BOB}'s jobs is 16.0 MiB" in errors
        output, errors = box.run_as(ALICE, large)
        assert (output, "memory_limit" in errors) == ("", False)

        output, errors = box.run_as(CAROL, JOB.format(priority="normal"))
        assert output == "False\n"
        assert "cannot open /run/gpushare/sock: permission denied" in errors
        assert f"it belongs to group {GROUP}, you are not in it" in errors
        assert not own_folders(box), "she has none of her own instead"


def test_a_coordinator_that_dies_comes_back_and_its_jobs_with_it() -> None:
    with serving_box() as (box, unit):
        alice = box.start_as(ALICE, JOB.format(priority="normal") + "input(); train(); input()")
        assert line_of(alice) == "True"
        os.kill(unit.pid, signal.SIGKILL)
        unit.wait_until_ready()
        go_on(alice)
        assert line_of(alice) == "True"
        assert jobs_of(box).keys() == {ALICE}
        assert unit.num_starts == 2
        assert not own_folders(box), "she did not start one of her own"
        end(alice)


def test_a_private_coordinator_sees_that_the_service_has_the_device() -> None:
    with serving_box() as (_, unit), shared_box() as other:
        said = [warning["text"] for warning in other.client.status()["warnings"]]
        # The folder of the service's socket is not to be seen from outside the box.
        assert any(f"process {unit.pid} of user" in text for text in said), said


def test_uninstall_leaves_the_machine_as_it_was() -> None:
    with empty_box() as box:

        def machine() -> str:
            accounts = box.run("cat", "/etc/passwd", "/etc/group", "/etc/shadow").stdout
            names = "/etc/gpushare /etc/systemd /var/lib/gpushare"
            return accounts + box.run("find", *names.split(), is_checked=False).stdout

        before = machine()
        box.install()
        assert machine() != before
        assert "as it is" in box.install()
        box.admin("uninstall", "--remove-group")
        assert machine() == before

        box.install()
        box.run("sh", "-c", f"echo '# mine' >> {CONFIG}")
        said = box.admin("uninstall")
        assert f"kept      {CONFIG}, which was changed by hand" in said
        assert box.run("cat", CONFIG).stdout.endswith("# mine\n")
        assert box.run("test", "-e", UNIT, is_checked=False).returncode == 1
        assert f"left      group {GROUP}" in said
        box.run("getent", "group", GROUP)
        again = box.run(sys.executable, "-m", "gpushare", "admin", "uninstall", is_checked=False)
        assert again.returncode == 1
        assert "nothing is installed" in again.stderr


def test_a_program_that_the_service_cannot_reach_is_said_before_anything_is_written() -> None:
    with empty_box() as box:
        box.run(
            "sh", "-c", f"mkdir -m 700 /var/lib/closed && cp {PROGRAM} /var/lib/closed/gpushared"
        )
        refused = box.run(
            *[sys.executable, "-m", "gpushare", "admin", "install", "--group", GROUP],
            *["--device", "cpu", "--daemon", "/var/lib/closed/gpushared"],
            is_checked=False,
        )
        assert refused.returncode == 1
        assert "may not use /var/lib/closed" in refused.stderr
        assert box.run("getent", "group", GROUP, is_checked=False).returncode == 2
        assert box.run("test", "-e", UNIT, is_checked=False).returncode == 1
