"""`tools/setup_venv.sh` and the torch that it is told to install; its Python only listens."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.python.conftest import ROOT

PYTHON = """#!/bin/sh
echo "$@" >>"$(dirname "$0")/said"
"""


@pytest.fixture
def setup_venv(tmp_path):
    """setup_venv(NAME="value") -> the torches that the script has installed."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    said = tmp_path / "bin" / "said"

    def run(**settings: str) -> list[str]:
        said.write_text("")
        env = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        subprocess.run(
            [str(Path(ROOT) / "tools" / "setup_venv.sh")],
            env=env | {"VENV": str(tmp_path)} | settings,
            check=True,
            capture_output=True,
        )
        return [word for word in said.read_text().split() if word.startswith("torch==")]

    return run


def test_a_torch_that_is_there_is_kept(setup_venv):
    assert setup_venv() == []


def test_a_torch_that_is_named_takes_its_place_once(setup_venv):
    setup_venv()
    assert setup_venv(GPUSHARE_TORCH="torch==2.11.0") == ["torch==2.11.0"]
    assert setup_venv(GPUSHARE_TORCH="torch==2.11.0") == []
    assert setup_venv() == []
    assert setup_venv(GPUSHARE_TORCH="torch==2.12.0") == ["torch==2.12.0"]
