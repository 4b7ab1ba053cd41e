"""Users of one coordinator: what each may have, and one who may not come in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.hostile.shared_box import SharedBox, shared_box
from tests.support import forked

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")

GROUP = 64_999
ALICE = 64_001
BOB = 64_002

JOB = """
import os
os.setgroups([{group}])
os.setgid({uid})
os.setuid({uid})
import gpushare, torch
torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
job = gpushare.register(model, optimizer, priority="guaranteed")
for _ in range(3):
    model(torch.ones(4, 32)).sum().backward()
    optimizer.step()
print(job.is_managed, job.stats().iterations)
{more}
"""


def run_as(
    uid: int, folder: Path, box: SharedBox, *, group: int = GROUP, more: str = ""
) -> subprocess.CompletedProcess[str]:
    """A job of that user, who is in that group too."""
    script = folder / "script.py"
    script.write_text(JOB.format(uid=uid, group=group, more=more))
    env = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_")}
    env |= {"GPUSHARE_SOCKET": box.path, "GPUSHARE_REPORT": "0", "HOME": "/nonexistent"}
    return forked.run([str(script)], env)


def test_members_share_strangers_are_told_and_classes_are_bounded(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[user.{BOB}]\nmax_priority = "interactive"\n')
    options = ("--config", str(config), "--socket-group", str(GROUP))
    with shared_box(*options, mode="0660") as box:
        alice = run_as(ALICE, tmp_path, box)
        assert alice.stdout == "True 3\n", alice.stderr
        assert f"jobs of user {ALICE} may have at most priority normal, not guaranteed" in (
            alice.stderr
        )

        more = 'job.set(priority="interactive"); print("set")\njob.set(priority="guaranteed")'
        bob = run_as(BOB, tmp_path, box, more=more)
        assert bob.stdout == "True 3\nset\n", bob.stderr
        assert f"jobs of {BOB} may have at most priority interactive, not guaranteed" in bob.stderr
        assert "Who owns the coordinator may set more" in bob.stderr

        stranger = run_as(ALICE, tmp_path, box, group=ALICE)
        assert stranger.stdout == "False 0\n"
        assert f"cannot open {box.path}: permission denied; it belongs to group {GROUP}" in (
            stranger.stderr
        )


def test_a_user_may_not_change_another_ones_job(tmp_path: Path) -> None:
    with shared_box() as box:
        more = """
from gpushare._coordinator.client import CoordinatorClient, RefusedError
client = CoordinatorClient([os.environ["GPUSHARE_SOCKET"]])
child = os.fork()
if child == 0:
    client.set_job(job.number, {"priority": "opportunistic"})
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for ask in (lambda: client.set_policy("fifo"), lambda: client.stop(force=True)):
    try:
        ask()
    except RefusedError as error:
        print(type(error).__name__, error)
"""
        ended = run_as(ALICE, tmp_path, box, more=more)
        assert ended.stdout.splitlines() == [
            "True 3",
            f"RefusedError user {ALICE} may not change the policy of the coordinator of user root",
            f"RefusedError user {ALICE} may not stop the coordinator of user root",
        ], ended.stderr
