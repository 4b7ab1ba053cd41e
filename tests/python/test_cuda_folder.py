"""The tests on the fake CUDA device, beside those of other folders."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.python.conftest import ROOT

OTHER = "tests/lint/test_text.py"
CUDA = "tests/cuda/test_fake_functions.py"


def test_without_the_device_only_its_own_tests_are_skipped() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", OTHER, CUDA],
        env=os.environ | {"FAKECUDA_LIBRARIES": "/nowhere"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert "no fake device in /nowhere" in ended.stdout
    assert OTHER not in ended.stdout, "it was skipped too"
    assert " passed, " in ended.stdout.splitlines()[-1]
