"""The table of torch versions: how `scripts/torch_versions` writes it, and that the code agrees."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpushare._torch import cuda
from tests.cuda import torch_versions
from tests.cuda.torch_versions import Row
from tests.python.conftest import ROOT

RELOCATIONS = """
Relocation section '.rela.dyn' at offset 0x1000 contains 2 entries:
000000000001  000300000006 R_X86_64_GLOB_DAT 0000000000000000 cudaMemGetInfo@libcudart.so.13 + 0
000000000002  000300000001 R_X86_64_64       0000000000000000 cudaFree@libcudart.so.13 + 0
Relocation section '.rela.plt' at offset 0x2000 contains 3 entries:
000000000003  000100000007 R_X86_64_JUMP_SLO 0000000000000000 cudaMalloc@libcudart.so.13 + 0
000000000004  000200000007 R_X86_64_JUMP_SLO 0000000000000000 cudaMalloc + 0
000000000005  000200000007 R_X86_64_JUMP_SLO 0000000000000000 cudaMallocAsync@libcudart.so.13 + 0
000000000006  000000000025 R_X86_64_IRELATIV                  7e090
"""
JUNIT = """<testsuites><testsuite>
  <testcase classname="tests.cuda.test_kills" name="test_all"/>
  <testcase classname="tests.cuda.test_gap" name="test_a[x.y]"><failure message="no"/></testcase>
  <testcase classname="tests.cuda.test_gap" name="test_a[y]"><failure message="no"/></testcase>
  <testcase classname="tests.cuda.test_gap" name="test_b"><error message="no"/></testcase>
  <testcase classname="tests.cuda.test_gap" name="test_c"><skipped message="no | fake"/></testcase>
</testsuite></testsuites>
"""


def row(torch: str, **more: str) -> Row:
    return Row(torch=torch, date="2026-01-02", **more)


def test_rows_are_kept_in_order_and_replaced(tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    first = row("2.10.0", cuda="12.8", passed="3", failed="0", import_slots="3 of 3 + 2")
    for each in (first, row("2.9.1", notes="no disk"), row("2.10.0", passed="1"), first):
        torch_versions.write(table, each, "scripts/torch_versions 2.10.0")
    assert torch_versions.read_rows(table.read_text()) == [row("2.9.1", notes="no disk"), first]
    assert "Last command: `scripts/torch_versions 2.10.0`" in table.read_text()


@pytest.mark.parametrize(
    ("more", "is_good"),
    [
        ({}, True),
        ({"failed": "1"}, False),
        ({"passed": "0"}, False),
        ({"passed": "-", "failed": "-"}, False),
        ({"import_slots": "2 of 3 + 2"}, False),
    ],
)
def test_a_row_is_good_if_all_was_found_and_passed(more: dict[str, str], is_good: bool) -> None:
    cells = {"passed": "9", "failed": "0", "import_slots": "3 of 3 + 1"} | more
    assert row("2.13.0", **cells).is_good is is_good


@pytest.mark.parametrize(
    ("symbol", "count"), [("cudaMalloc", 2), ("cudaMemGetInfo", 1), ("cudaFree", 0)]
)
def test_slots_are_the_relocations_that_a_loader_fills_in(symbol: str, count: int) -> None:
    assert torch_versions.count_slots(RELOCATIONS, symbol) == count


def test_what_failed_is_named_and_what_was_skipped_has_its_reason(tmp_path: Path) -> None:
    found = tmp_path / "tests.xml"
    found.write_text(JUNIT)
    made = row("2.13.0")
    torch_versions.count_tests(found, made)
    assert (made.passed, made.failed, made.skipped) == ("1", "3", "1")
    assert made.notes == "failed: test_a (2), test_b; skipped: no / fake"


def test_a_version_that_cannot_be_installed_has_a_row_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table.md"
    words = ["--table", str(table), "--torch", "2.8.0", "--command", "x", "--problem", "no\n| disk"]
    monkeypatch.setattr(sys, "argv", ["torch_versions", *words])
    with pytest.raises(SystemExit, match="1"):
        torch_versions.main()
    (made,) = torch_versions.read_rows(table.read_text())
    assert (made.torch, made.notes, made.passed) == ("2.8.0", "no / disk", "-")


def test_the_running_torch_is_asked_for_its_versions_and_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Path] = []
    monkeypatch.setattr(torch_versions, "find_slots", lambda folder: seen.append(folder) or "all")
    options = argparse.Namespace(torch="2.13.0", problem="", python=sys.executable, junit=None)
    made = torch_versions.make_row(options)
    assert made.python == ".".join(map(str, sys.version_info[:3]))
    assert (seen[0] / "libc10.so").exists()


def test_an_unknown_argument_is_refused() -> None:
    script = Path(ROOT) / "scripts" / "torch_versions"
    done = subprocess.run([script, "--fast"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: usage: torch_versions ")


def test_the_versions_that_cuda_takes_are_those_whose_tests_passed() -> None:
    rows = torch_versions.read_rows(torch_versions.TABLE.read_text())
    assert {each.minor for each in rows if each.is_good and each.tests == "all"} == set(
        cuda.TESTED_TORCH
    )


def test_the_table_has_each_minor_version_that_may_be_installed() -> None:
    metadata = (Path(ROOT) / "tools" / "build_backend.py").read_text()
    wanted = re.search(r'"torch>=2\.(\d+),<2\.(\d+)"', metadata)
    assert wanted is not None
    rows = torch_versions.read_rows(torch_versions.TABLE.read_text())
    minors = {int(each.minor.split(".")[1]) for each in rows}
    assert minors == set(range(int(wanted[1]), int(wanted[2])))
