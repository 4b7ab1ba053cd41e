"""What `gpushare admin` writes, says and removes, below a folder; systemd judges the unit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gpushare._settings import config
from gpushare._settings.config_files import SYSTEM_FILE
from gpushare.admin.files import RECORD_PATH
from gpushare.admin.settings_file import settings_text
from gpushare.admin.unit import GPUS_PATH, UNIT_PATH, unit_text
from tests.python.conftest import PACKAGE, Completed, clean_environment

DAEMON = str(PACKAGE / "bin" / "gpushared")
GPU = "cuda:GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
MOST_EXPOSURE = 30
"""Of 100: `systemd-analyze security` shows a tenth of it."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def admin(*words: str, path: str = "/usr/bin:/bin") -> Completed:
    """Runs it where no GPU is found, unless `path` has an nvidia-smi."""
    return subprocess.run(
        [sys.executable, "-m", "gpushare", "admin", *words],
        env=clean_environment(config=os.devnull) | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def install(root: Path, *more: str, path: str = "/usr/bin:/bin") -> Completed:
    daemon = () if "--daemon" in more else ("--daemon", "/bin/ls")
    return admin("install", "--group", "gpu", "--root", str(root), *daemon, *more, path=path)


def files_below(root: Path) -> dict[str, str]:
    return {
        f"/{path.relative_to(root)}": path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def settings_below(root: Path) -> config.Config:
    return config.load({"GPUSHARE_CONFIG": f"{root}{SYSTEM_FILE}"})


def fake_nvidia_smi(folder: Path, *lines: str, code: int = 0) -> str:
    """The PATH on which it is found."""
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    with program.open("a") as file:
        file.write(f"exit {code}\n")
    program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_a_dry_run_shows_each_file_and_command_and_writes_nothing(tmp_path: Path) -> None:
    said = install(tmp_path, "--dry-run")
    assert said.returncode == 0, said.stderr
    assert list(tmp_path.iterdir()) == []
    assert f"write     {tmp_path}{UNIT_PATH}\n" in said.stdout
    assert "            ExecStart=/bin/ls --device %i --socket-folder /run/gpushare" in said.stdout
    assert f"write     {tmp_path}{SYSTEM_FILE}\n" in said.stdout
    assert "            [user.default]\n" in said.stdout
    for command in (
        "groupadd --system gpu",
        "useradd --system --no-user-group --gid gpu",
        "systemctl daemon-reload",
        "systemctl enable gpushared@cpu.service",
        "systemctl restart gpushared@cpu.service",
    ):
        assert f"not run   {command}" in said.stdout


def test_install_is_repeatable_says_what_changes_and_uninstall_removes_all(tmp_path: Path) -> None:
    first = install(tmp_path, "--capacity", "1GiB", "--device", "cpu")
    assert first.returncode == 0, first.stderr
    written = files_below(tmp_path)
    assert written.keys() == {UNIT_PATH, SYSTEM_FILE, RECORD_PATH}
    assert written[UNIT_PATH] == unit_text(program="/bin/ls", group="gpu")
    assert settings_below(tmp_path).capacity_bytes == 1 << 30
    for path in (UNIT_PATH, SYSTEM_FILE):
        assert (tmp_path / path[1:]).stat().st_mode & 0o777 == 0o644

    again = install(tmp_path, "--capacity", "1GiB", "--device", "cpu")
    assert again.stdout.count("as it is") == 2
    assert "systemctl start gpushared@cpu.service" in again.stdout
    assert files_below(tmp_path) == written

    changed = install(tmp_path, "--capacity", "2GiB", "--device", "cpu", "--daemon", "/bin/cat")
    lines = [line.strip() for line in changed.stdout.splitlines()]
    assert f"change    {tmp_path}{UNIT_PATH}" in lines
    assert any(line.startswith("- ExecStart=/bin/ls") for line in lines)
    assert any(line.startswith("+ ExecStart=/bin/cat") for line in lines)
    assert any(line.startswith('+ capacity = "2GiB"') for line in lines)
    assert "not run   systemctl restart gpushared@cpu.service" in lines

    removed = admin("uninstall", "--root", str(tmp_path))
    assert removed.returncode == 0, removed.stderr
    assert list(tmp_path.iterdir()) == []
    assert admin("uninstall", "--root", str(tmp_path)).returncode == 1


def test_a_file_that_somebody_has_changed_is_kept_and_said(tmp_path: Path) -> None:
    install(tmp_path)
    settings = tmp_path / SYSTEM_FILE[1:]
    settings.write_text(settings.read_text() + '[user.alice]\nmemory_limit = "1GiB"\n')
    mine = settings.read_text()
    again = install(tmp_path)
    assert f"kept      {settings}, which was changed by hand" in again.stdout
    assert "            - [user.alice]" in again.stdout
    assert settings.read_text() == mine
    # A dry run is no reason to forget whose it is.
    admin("uninstall", "--dry-run", "--root", str(tmp_path))
    removed = admin("uninstall", "--root", str(tmp_path))
    assert f"kept      {settings}, which was changed by hand" in removed.stdout
    assert files_below(tmp_path) == {SYSTEM_FILE: mine}


def test_a_settings_file_that_was_there_before_is_never_touched(tmp_path: Path) -> None:
    settings = tmp_path / SYSTEM_FILE[1:]
    settings.parent.mkdir(parents=True)
    settings.write_text('[coordinator]\npolicy = "rr"\n')
    assert "kept" in install(tmp_path).stdout
    admin("uninstall", "--root", str(tmp_path))
    assert files_below(tmp_path) == {SYSTEM_FILE: '[coordinator]\npolicy = "rr"\n'}


def test_several_gpus_have_one_unit_and_the_smallest_says_the_capacity(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    other = GPU.replace("0a1b", "ffff")
    lines = [f"{GPU[5:]}, 81559, [N/A]", f"{other[5:]}, 40960, Disabled"]
    said = install(root, path=fake_nvidia_smi(tmp_path, *lines))
    assert said.returncode == 0, said.stderr
    assert "systemctl enable gpushared@cuda.service" in said.stdout
    assert settings_below(root).cuda_capacity_bytes == 40960 << 20
    assert f"\nEnvironment=GPUSHARE_DEVICES={GPU},{other}\n" in files_below(root)[GPUS_PATH]
    assert json.loads(files_below(root)[RECORD_PATH])["devices"] == ["cuda"]
    # The unit that is not wanted any more is disabled, and what only it had is gone.
    fewer = install(root, path=fake_nvidia_smi(tmp_path, lines[1]))
    assert "systemctl disable --now gpushared@cuda.service" in fewer.stdout
    assert f"systemctl enable gpushared@{other}.service" in fewer.stdout
    assert GPUS_PATH not in files_below(root)
    assert json.loads(files_below(root)[RECORD_PATH])["devices"] == [other]
    # One GPU may have the name that a second one will need later.
    install(root, "--device", "cuda", path=fake_nvidia_smi(tmp_path, lines[1]))
    assert json.loads(files_below(root)[RECORD_PATH])["devices"] == ["cuda"]
    admin("uninstall", "--root", str(root))
    assert list(root.iterdir()) == []


def test_each_device_that_is_named_has_a_unit(tmp_path: Path) -> None:
    other = GPU.replace("0a1b", "ffff")
    said = install(tmp_path, "--device", GPU, "--device", other, "--capacity", "40GiB")
    assert f"systemctl enable gpushared@{GPU}.service gpushared@{other}.service" in said.stdout
    assert json.loads(files_below(tmp_path)[RECORD_PATH])["devices"] == [GPU, other]


def test_all_gpus_where_there_are_none_is_an_error(tmp_path: Path) -> None:
    said = install(tmp_path, "--device", "cuda")
    assert said.returncode == 1
    assert said.stderr == (
        "gpushare: --device cuda: nvidia-smi finds no GPU. Say --device cuda:UUID\n"
    )


def test_the_capacity_of_before_stays_unless_it_is_said_anew(tmp_path: Path) -> None:
    install(tmp_path, "--device", GPU, "--capacity", "80GiB")
    again = install(tmp_path, "--device", GPU)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("as it is") == 2
    install(tmp_path, "--device", "cpu", "--capacity", "1GiB")
    settings = settings_below(tmp_path)
    assert (settings.cuda_capacity_bytes, settings.capacity_bytes) == (80 << 30, 1 << 30)
    install(tmp_path, "--device", GPU, "--capacity", "40GiB")
    assert settings_below(tmp_path).cuda_capacity_bytes == 40 << 30


def test_a_machine_whose_driver_finds_no_gpu_has_its_cpu(tmp_path: Path) -> None:
    path = fake_nvidia_smi(tmp_path, "No devices were found", code=6)
    root = tmp_path / "root"
    root.mkdir()
    said = install(root, path=path)
    assert said.returncode == 0, said.stderr
    assert json.loads(files_below(root)[RECORD_PATH])["devices"] == ["cpu"]


def test_what_cannot_work_is_said_before_anything_is_written(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    mig = fake_nvidia_smi(tmp_path, f"{GPU[5:]}, 81559, Enabled")
    broken = tmp_path / "broken"
    broken.mkdir()
    for said, code, text in (
        (install(root, "--device", GPU), 1, "say --capacity"),
        (install(root, "--device", "cuda:0"), 2, "neither cpu, cuda, nor cuda:UUID"),
        (install(root, "--capacity", "1GiB"), 2, "say --device"),
        (install(root, "--capacity", "0", "--device", "cpu"), 2, "at least 2 MiB"),
        (install(root, "--capacity", "x", "--device", "cpu"), 2, "at least 2 MiB"),
        (install(root, path=mig), 1, "is divided (MIG)"),
        (install(root, path=fake_nvidia_smi(broken, "no such")), 1, "nvidia-smi says 'no such'"),
        (install(root, "--daemon", "/nonexistent"), 1, "there is no program /nonexistent"),
        (install(root, "--daemon", "gpushared"), 1, "no absolute path"),
        (install(root, "--daemon", "/bin/false"), 1, "/bin/false does not start"),
        (install(root, "--daemon", "/bin/a b"), 1, "'/bin/a b': a unit's program"),
        (install(root, "--daemon", "/bin/100%"), 1, "'/bin/100%': a unit's program"),
        (admin("install", "--group", "a b", "--dry-run"), 2, "no name of a group"),
        (admin("install", "--group", "gpushared", "--dry-run"), 2, "user is called gpushared"),
        (admin("install", "--group", "gpu", "--root", str(root / "no")), 2, "no such folder"),
    ):
        assert said.returncode == code, said
        assert text in said.stderr
    assert list(root.iterdir()) == []


def test_a_kept_settings_file_without_the_gpus_memory_is_refused(tmp_path: Path) -> None:
    install(tmp_path)
    settings = tmp_path / SYSTEM_FILE[1:]
    settings.write_text("# mine\n")
    refused = install(tmp_path, "--device", GPU, "--capacity", "80GiB")
    assert refused.returncode == 1
    assert "capacity under [device.cuda]" in refused.stderr
    settings.write_text('[device.cuda]\ncapacity = "80GiB"\n')
    assert install(tmp_path, "--device", GPU).returncode == 0


def test_a_kept_settings_file_with_a_group_for_the_socket_is_refused(tmp_path: Path) -> None:
    settings = tmp_path / SYSTEM_FILE[1:]
    settings.parent.mkdir(parents=True)
    settings.write_text('[coordinator]\nsocket_group = "gpu"\n')
    refused = install(tmp_path)
    assert refused.returncode == 1
    assert "cannot start with socket_group under [coordinator]" in refused.stderr
    assert files_below(tmp_path).keys() == {SYSTEM_FILE}


def test_only_root_may_install_on_the_machine_itself() -> None:
    code = "import os; os.geteuid = lambda: 1000; import gpushare.cli.main as m; m.main()"
    for command in (["install", "--group", "gpu"], ["uninstall"]):
        ended = subprocess.run(
            [sys.executable, "-c", code, "admin", *command],
            env=clean_environment(config=os.devnull),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1
        assert "only root may do that" in ended.stderr
        assert "--dry-run" in ended.stderr


@needs_systemd
def test_systemd_accepts_the_unit_and_finds_it_little_exposed(tmp_path: Path) -> None:
    install(tmp_path)
    unit = str(tmp_path / UNIT_PATH[1:])
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSURE}", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout


def test_a_space_stands_before_the_comment_of_a_capacity_of_any_length() -> None:
    for size in ("1GiB", "1" * 40):
        text = settings_text({"cpu": size})
        assert f'\n[device.cpu]\ncapacity = "{size}" ' in text
        assert " # device memory" in text
    (line,) = (line for line in settings_text({"cpu": "1GiB"}).splitlines() if "1GiB" in line)
    assert line.index("#") == 33, "as the comments of the other lines"


@pytest.mark.skipif(not os.access(DAEMON, os.X_OK), reason="gpushared is not built")
def test_the_daemon_knows_each_setting_of_the_file_also_those_in_comments(tmp_path: Path) -> None:
    text = settings_text({"cpu": "64MiB"})
    for line in text.splitlines():
        # "# key = value" is a setting that waits to be used; all others are sentences.
        if line.startswith("# ") and (" = " in line or line.startswith("# [")):
            text = text.replace(line, line[2:])
    file = tmp_path / "config.toml"
    file.write_text(text.replace("[user.alice]", "[user.root]"))
    with tempfile.TemporaryDirectory() as folder:  # a socket's path is short
        command = [DAEMON, "--config", str(file), "--socket-folder", folder]
        said = ""
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr or ():
                said += line
                if f"serves {folder}/sock" in line:
                    process.terminate()
    assert process.returncode == 0, said
    assert "unknown key" not in said
