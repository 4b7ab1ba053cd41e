"""Steps of `gpushare admin` that fail, or find things gone: repeated, it comes to its end."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from gpushare._settings.config_files import SYSTEM_FILE
from gpushare.admin import gpus, service
from gpushare.admin.files import RECORD_PATH, Record, Tree
from gpushare.admin.hands import Hands, StepError
from gpushare.admin.program import check_python
from gpushare.admin.unit import UNIT_PATH
from tests.python.test_admin import GPU, admin, install


class FakeMachine:
    """A folder for a machine, with commands that note how they were called, and may fail."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "bin").mkdir()
        (folder / "root").mkdir()
        self._calls = folder / "calls"
        self._failing = folder / "failing"
        self._failing.write_text("")
        for name in ("groupadd", "useradd", "groupdel", "userdel", "systemctl"):
            program = folder / "bin" / name
            program.write_text(
                f'#!/bin/sh\necho "{name} $*" >> {self._calls}\n'
                f'while read -r bad; do case "{name} $*" in "$bad"*) exit 9;; esac; done'
                f" < {self._failing}\n"
            )
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
        self.tree = Tree(str(folder / "root"))
        self.accounts = {"gpu", "gpushared"}
        monkeypatch.setattr(service, "_has_user", lambda name: name in self.accounts)
        monkeypatch.setattr(service, "_group_id", lambda name: 7 if name in self.accounts else None)

    def let_fail(self, *commands: str) -> None:
        """From now on each that begins with one of these; without any none."""
        self._failing.write_text("".join(f"{command}\n" for command in commands))

    def calls(self) -> list[str]:
        """Returns those since the last time."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        self._calls.unlink(missing_ok=True)
        return lines

    def _hands(self) -> Hands:
        return Hands(self.tree, is_dry=False, is_for_here=True)

    def install(self, *devices: str) -> None:
        wish = service.Wish(
            program="/bin/ls", group="gpu", devices=devices, gpus=(), capacities={"cuda": "1GiB"}
        )
        service.install(wish, self.tree, self._hands(), has_systemd=True)

    def uninstall(self) -> None:
        service.uninstall(self.tree, self._hands(), has_systemd=True, remove_group=True)

    def record(self) -> Record:
        record = self.tree.read_record()
        assert record is not None
        return record


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    made = FakeMachine(tmp_path, monkeypatch)
    made.accounts.clear()
    made.install("cpu")
    made.accounts.update({"gpu", "gpushared"})
    made.calls()
    return made


def test_a_removal_that_failed_can_be_repeated(machine: FakeMachine) -> None:
    for failing, done in (
        ("systemctl disable", "nothing"),
        ("systemctl clean", "nothing"),
        ("userdel", "units"),
        ("groupdel", "user"),
    ):
        machine.let_fail(failing)
        with pytest.raises(StepError, match=failing):
            machine.uninstall()
        record = machine.record()
        assert bool(record.devices) == (done == "nothing")
        assert bool(record.files) == (done == "nothing")
        assert bool(record.users) == (done in {"nothing", "units"})
        assert record.groups == ["gpu"]
    machine.let_fail()
    machine.calls()
    machine.uninstall()
    assert machine.calls() == ["systemctl daemon-reload", "groupdel gpu"]
    assert list(machine.tree.at("/").iterdir()) == []


def test_accounts_and_units_that_are_gone_do_not_stop_a_removal(machine: FakeMachine) -> None:
    machine.accounts.clear()
    machine.tree.remove(UNIT_PATH)
    machine.let_fail("userdel", "groupdel", "systemctl disable", "systemctl clean")
    machine.uninstall()
    assert machine.calls() == ["systemctl stop gpushared@*.service", "systemctl daemon-reload"]
    assert list(machine.tree.at("/").iterdir()) == []


def test_a_former_device_is_forgotten_once_it_is_disabled(machine: FakeMachine) -> None:
    machine.let_fail("systemctl disable --now gpushared@cpu")
    with pytest.raises(StepError):
        machine.install(GPU)
    assert machine.record().devices == [GPU, "cpu"]
    machine.let_fail()
    machine.install(GPU)
    assert machine.record().devices == [GPU]
    assert "systemctl disable --now gpushared@cpu.service" in machine.calls()


def test_an_nvidia_smi_that_hangs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(gpus, "_PATIENCE_SECONDS", 0.1)
    with pytest.raises(gpus.GpuError, match="did not answer within 0.1 s"):
        gpus.find_gpus()


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    install(tmp_path)
    settings, record = (tmp_path / path[1:] for path in (SYSTEM_FILE, RECORD_PATH))
    good = json.loads(record.read_text())
    settings.write_bytes(b"# \xff\n")
    said = install(tmp_path)
    assert (said.returncode, len(said.stderr.splitlines())) == (1, 1), said.stderr
    assert "no text in UTF-8" in said.stderr
    for wrong in (
        {"files": []},
        {"files": {UNIT_PATH: 1}},
        {"devices": 5},
        {"users": [1]},
        {"groups": "gpu"},
        {"more": []},
    ):
        record.write_text(json.dumps(good | wrong))
        for said in (install(tmp_path), admin("uninstall", "--root", str(tmp_path))):
            assert (said.returncode, len(said.stderr.splitlines())) == (1, 1), said.stderr
            assert "is no record of an installation" in said.stderr
    # Removal needs no text: such a file is not the installation's.
    record.write_text(json.dumps(good))
    removed = admin("uninstall", "--root", str(tmp_path))
    assert removed.returncode == 0, removed.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [settings]


def test_a_python_in_a_home_that_others_cannot_enter_is_said() -> None:
    with tempfile.TemporaryDirectory(prefix="gpushare-") as text:
        home = Path(text)
        python = home / "python"
        shutil.copy("/bin/ls", python)
        link = home / "link"
        link.symlink_to(python)
        home.chmod(0o755)
        assert check_python(str(link), None) == []
        home.chmod(0o700)
        (note,) = check_python(str(link), None)
    assert note.startswith(
        f"note: other users cannot run this gpushare: its Python is {python}, "
        f"and they may not use {home}."
    )
