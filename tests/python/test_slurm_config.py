"""What `gpushare slurm print-config` prints, and which options it takes.

tests/e2e has a Slurm that runs with the texts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpushare.admin.unit import UNIT_PATH as ADMIN_UNIT_PATH
from gpushare.admin.unit import unit_text
from gpushare.cli import main
from gpushare.cli.exit_code import ExitCode
from gpushare.cli.slurm.arbiter_fragments import COORDINATOR_UNIT_PATH, UNIT_PATH, Arbiter
from tests.python.conftest import ROOT

TOKEN = "/etc/gpushare/token"
ADDRESS = "tcp:10.0.0.1:7070"
ARBITER = Arbiter(ADDRESS, TOKEN)
MOST_EXPOSURE = "30"
"""Of 100, as for the unit of the coordinators."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def printed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    """The exit code, and what the command writes to stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["gpushare", "slurm", "print-config", *words])
    code = 0
    try:
        main.main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, *capfd.readouterr()


def analyze(*words: str) -> tuple[int, str]:
    """The exit code of systemd-analyze, and what it writes."""
    command = ["systemd-analyze", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_the_arbiter_stands_in_each_part_that_needs_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code, text, _ = printed(monkeypatch, capfd, "--gpus=1", f"--arbiter={ADDRESS}")
    heads = [line.split(":")[0] for line in text.splitlines() if line.startswith("##### ")]
    parts = ("slurm.conf", "gres.conf", "prolog", "task-prolog", "arbiter.service", "arbiter.conf")
    assert (code, heads) == (0, [f"##### {part}" for part in parts])
    assert f"--arbiter-address {ADDRESS} --token-file {TOKEN} \\\n" in text
    assert f"echo 'export GPUSHARE_ARBITER={ADDRESS}'\n" in text
    assert f" --arbiter --listen {ADDRESS} --token-file {TOKEN}\n" in text
    for part in ("slurm.conf", "gres.conf", "task-prolog"):
        section = text.split(f"##### {part}: ")[1].split("##### ")[0]
        assert "token" not in section, "jobs need not know where it lies"


def test_without_an_arbiter_nothing_speaks_of_one(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code, text, _ = printed(monkeypatch, capfd, "--gpus=1")
    assert code == 0
    assert "arbiter" not in text.lower()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(
            ("--arbiter", value)
            for value in (
                "10.0.0.1:7070", "unix:/run/arbiter", "none", "tcp:host", "tcp:host:0", "tcp::7070",
                "tcp:host:65536", "tcp:a b:1", "tcp:$(id):1", "tcp:'x':1", "tcp:h:1\n", "tcp:%H:1",
            )
        ),
        *(
            ("--arbiter-token-file", value)
            for value in ("token", "/a b", "/a'b", "/$HOME", "/a%n", "/a\n", "/", "")
        ),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_in_one_line(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("prolog", f"--arbiter={ADDRESS}", f"{option}={value}")
    code, text, errors = printed(monkeypatch, capfd, *words)
    assert (code, text) == (ExitCode.USAGE, "")
    (line,) = errors.splitlines()
    assert option in line
    assert line.isprintable()


@pytest.mark.parametrize("part", ["arbiter.service", "arbiter.conf"])
def test_a_part_that_needs_an_arbiter_says_so(
    part: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code, text, errors = printed(monkeypatch, capfd, part)
    assert (code, text) == (ExitCode.USAGE, "")
    assert f"{part} needs --arbiter" in errors


# A name is looked up, and a unit cannot say at which address it will be found.
def test_coordinators_reach_the_arbiter_alone_where_its_address_is_known() -> None:
    for address, allowed in (
        (ADDRESS, "10.0.0.1"),
        ("tcp:[fd00::1]:7070", "fd00::1"),
        ("tcp:head-1.example.org:7070", "any"),
    ):
        text = Arbiter(address, TOKEN).coordinator_unit()
        assert text.endswith(f"\nIPAddressAllow={allowed}\n")


def write_below(folder: Path, path: str, text: str) -> str:
    """Writes what belongs into /etc/systemd/system below another folder; returns its path."""
    file = folder / Path(path).relative_to("/etc/systemd/system")
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return str(file)


@needs_systemd
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    arbiter = write_below(tmp_path, UNIT_PATH, ARBITER.unit("/bin/true"))
    ours = unit_text(program="/bin/true", group="gpu")
    coordinator = write_below(tmp_path, ADMIN_UNIT_PATH, ours)
    write_below(tmp_path, COORDINATOR_UNIT_PATH, ARBITER.coordinator_unit())
    for unit in (arbiter, coordinator):
        # It says so and goes on where it does not understand a line.
        assert analyze("verify", "--man=no", unit) == (0, "")
    judged = ("security", "--offline=true", f"--threshold={MOST_EXPOSURE}")
    code, text = analyze(*judged, arbiter)
    assert code == 0, text


# systemd adds up what several lines allow, so the coordinators keep their local sockets.
@needs_systemd
def test_coordinators_have_a_network_with_their_part_and_none_without(tmp_path: Path) -> None:
    ours = unit_text(program="/bin/true", group="gpu")
    unit = write_below(tmp_path, ADMIN_UNIT_PATH, ours)
    _, before = analyze("security", "--offline=true", unit)
    write_below(tmp_path, COORDINATOR_UNIT_PATH, ARBITER.coordinator_unit())
    _, after = analyze("security", "--offline=true", unit)
    assert "may allocate Internet sockets" not in before
    assert "may allocate Internet sockets" in after
    assert "may allocate local sockets" in after
    assert "may allocate exotic sockets" not in after


def test_the_document_of_gangs_has_the_same_lines_for_coordinators() -> None:
    lines = ARBITER.coordinator_unit().partition("\n[Service]\n")[2]
    assert f"```ini\n[Service]\n{lines}```\n" in (ROOT / "docs" / "gangs.md").read_text()
