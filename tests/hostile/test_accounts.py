"""Accounts where the coordinator is killed, the disk is full, files are damaged, users are two."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.account_kills import BUDGET_BYTES, names_in, run
from tests.hostile.peer import Peer
from tests.hostile.shared_box import PATIENCE_SECONDS, SharedBox, shared_box
from tests.support.small_disk import small_disk

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
GROUP = 64_999
ALICE = 64_001
BOB = 64_002
CAROL = 64_003
"""She is not in the group."""


HISTORY = """
import contextlib, io, json, os, sys
from gpushare.cli import main
from gpushare.cli.app import run_app

# Imports all that the command needs, which another user may not be able to read.
with contextlib.redirect_stdout(io.StringIO()):
    run_app(["history", "--format", "json"])
uid = int(sys.argv[1])
if uid != os.geteuid():
    os.setgroups(json.loads(sys.argv[2]))
    os.setgid(uid)
    os.setuid(uid)
sys.argv = ["gpushare", "history", "--format", "json"]
main.main()
"""


def eventually(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)


def end_a_job(box: SharedBox, name: str, uid: int = 0) -> None:
    """A process that registers as a job of this name and user, and ends."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if uid:
                os.setgroups([GROUP])
                os.setgid(uid)
                os.setuid(uid)
            peer = Peer(box.path)
            assert peer.hello(command=f"python {name}.py --secret") is not None
            assert peer.register(name=name) is not None
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def test_kills_lose_and_double_nothing() -> None:
    outcome = run(num_jobs=160, num_kills=4)
    assert (outcome.lost, outcome.doubled, outcome.unknown) == (set(), set(), set())
    # All but those that a kill met on their way: at most those that were there at the same time,
    # and those that had just ended.
    assert outcome.num_registered - outcome.num_cut_off > 80
    assert outcome.most_bytes <= BUDGET_BYTES


def fill(path: Path) -> None:
    """Writes a file until its disk is full."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(512))


def test_a_full_disk_delays_accounts_and_harms_no_job(tmp_path: Path) -> None:
    folder = tmp_path / "accounts"
    with small_disk(folder, 32 << 10) as refusal:
        if refusal:
            pytest.skip(f"no small disk here: {refusal}")
        folder.chmod(0o700)
        filler = folder / "filler"
        with shared_box("--accounts-folder", str(folder)) as box:
            end_a_job(box, "before")
            eventually(lambda: names_in(folder) == ["before"])
            fill(filler)
            # More than the rest of the last page of the journal can take.
            names = [f"job-{index}" for index in range(20)]
            for name in names:
                end_a_job(box, name)
            eventually(lambda: "is written later" in box.log.read_text())
            assert box.answers()
            filler.unlink()
            eventually(lambda: names_in(folder) == ["before", *names])


def test_a_damaged_journal_costs_its_damaged_lines(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "accounts"
    with shared_box("--accounts-folder", str(folder)) as box:
        end_a_job(box, "one")
        eventually(lambda: names_in(folder) == ["one"])
        (path,) = folder.iterdir()
        with path.open("ab") as file:
            file.write(b'\x00\xff{"v":1,"name":')
        end_a_job(box, "two")
        eventually(lambda: b'"name":"two"' in path.read_bytes())
    said = history(os.geteuid(), folder, tmp_path)
    assert [job["name"] for job in said] == ["one", "two"]


def history(uid: int, folder: Path, tmp_path: Path, *, errors: str = "damaged") -> list[Any]:
    """What ``gpushare history`` shows a user of the accounts in a folder."""
    config = tmp_path / "config.toml"
    config.write_text(f'[accounts]\nfolder = "{folder}"\n')
    env = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_")}
    env |= {"GPUSHARE_CONFIG": str(config), "HOME": "/nonexistent"}
    env.pop("XDG_STATE_HOME", None)
    groups = [] if uid == CAROL else [GROUP]
    ended = subprocess.run(
        [sys.executable, "-c", HISTORY, str(uid), json.dumps(groups)],
        env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert errors in ended.stderr
    return json.loads(ended.stdout)


@needs_root
def test_a_user_sees_own_jobs_in_full_and_those_of_others_in_part(tmp_path: Path) -> None:
    for place in (tmp_path, *tmp_path.parents[:3]):
        place.chmod(place.stat().st_mode | 0o055)
    folder = tmp_path / "accounts"
    options = ("--socket-group", str(GROUP), "--accounts-folder", str(folder))
    with shared_box(*options, mode="0660") as box:
        end_a_job(box, "hers", ALICE)
        end_a_job(box, "his", BOB)
        eventually(lambda: names_in(folder) == ["hers", "his"])
        alice = {job["name"]: job for job in history(ALICE, folder, tmp_path, errors="")}
        assert alice["hers"]["command"] == "python hers.py --secret"
        assert alice["hers"]["pid"] is not None
        private = ("command", "pid", "exit_code", "signal")
        assert [alice["his"][name] for name in private] == [None] * 4
        assert (alice["his"]["uid"], alice["his"]["how"]) == (BOB, "died")
        root = {job["name"]: job for job in history(0, folder, tmp_path, errors="")}
        assert root["his"]["command"] == "python his.py --secret"
        assert history(CAROL, folder, tmp_path, errors="Permission denied") == []
