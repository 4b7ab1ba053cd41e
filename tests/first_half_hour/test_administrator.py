"""The page for the administrator of two users, on a machine of its own that has no systemd.

`systemctl` cannot be tried there: UnitRunner does what the unit says. The package is copied to
/opt/gpushare, which is what the page's first section does with pip.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.first_half_hour.conftest import make_programs
from tests.first_half_hour.page import Page, Shell
from tests.hostile.installed_box import InstalledBox, NoBoxError
from tests.support.documents import ROOT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can install a service")

JOB = """
import gpushare, torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
job = gpushare.register(model, optimizer, name="{name}", priority="interactive")
for _ in range(20):
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()
print(job.is_managed, flush=True)
input()
"""


@pytest.fixture
def box() -> Iterator[InstalledBox]:
    """A machine with the users alice and bob, on which /opt/gpushare has the package."""
    try:
        box = InstalledBox()
    except NoBoxError as error:
        pytest.skip(f"a machine of its own cannot be made here: {error}")
    try:
        # What lies in /opt may be needed here, and what comes there is the box's alone.
        box.run("mkdir", "/tmp/opt", "/tmp/opt/upper", "/tmp/opt/work")
        layers = "lowerdir=/opt,upperdir=/tmp/opt/upper,workdir=/tmp/opt/work"
        box.run("mount", "-t", "overlay", "-o", layers, "overlay", "/opt")
        for user in ("alice", "bob"):
            box.run("useradd", "--no-create-home", user)
        yield box
    finally:
        box.close()


@pytest.fixture
def administrator(box: InstalledBox) -> Iterator[Shell]:
    """Root's terminal there. What it needs lies outside /tmp, of which the box has its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_")}
    environment = kept | {"PATH": f"/opt/gpushare/bin:{os.environ['PATH']}", "HOME": "/root"}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        installed = Path(folder) / "gpushare"
        shutil.copytree(ROOT / "python" / "gpushare", installed / "lib" / "gpushare")
        make_programs(installed / "bin", Path("/opt/gpushare/lib"))
        box.run("cp", "-r", str(installed), "/opt")
        terminal = Shell(Path(folder), environment, tuple(box.enter([])))
        yield terminal
        terminal.close()


def start_job(box: InstalledBox, user: str) -> subprocess.Popen[str]:
    job = box.start_as(user, JOB.format(name=f"of-{user}"))
    assert job.stdout is not None
    assert job.stdout.readline() == "True\n", job.communicate()[1]
    return job


def test_two_users(box: InstalledBox, administrator: Shell) -> None:
    page = Page("how_to/two_users.md")
    assert "gpushared@.service" in administrator.follow(page, "2.")
    assert not administrator.run("ls /etc/systemd/system/gpushared@.service || true\n").startswith(
        "/etc"
    )
    administrator.follow(page, "3.")
    (limits,) = [block.text for block in page.blocks("4.") if block.language == "toml"]
    administrator.run(f"cat >> /etc/gpushare/config.toml <<'END'\n{limits}END\n")
    unit = box.unit()
    unit.start()
    try:
        jobs = [start_job(box, user) for user in ("alice", "bob")]
        seen = administrator.follow(page, "5.")
        assert "of-alice" in seen
        assert "of-bob" in seen
        (device,) = json.loads(administrator.run("gpushare status --json\n"))["devices"]
        classes = {job["name"]: job["priority"] for job in device["jobs"]}
        assert classes == {"of-alice": "interactive", "of-bob": "normal"}
        alice, bob = (job.communicate("\n")[1] for job in jobs)
        assert alice == ""
        assert "may have at most priority normal, not interactive" in bob
    finally:
        unit.stop()
    administrator.follow(page, "7.")
    assert "gpushared@" not in administrator.run("ls /etc/systemd/system\n")
