"""A build finds the torch it is for, and says in one sentence what it lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.install.conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import build_backend


def environment_with(folder: Path, version: str) -> Path:
    """A folder of packages with a torch of that version, as its metadata has it."""
    info = folder / f"torch-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    return folder


@pytest.fixture
def hidden_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A build that cannot import torch, for an environment whose packages lie in this folder."""
    monkeypatch.setattr(build_backend.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(build_backend.sysconfig, "get_path", lambda _name: str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("version", "requirement", "label"),
    [
        ("2.13.0+cpu", "torch==2.13.*", "torch2.13.cpu"),
        ("2.9.1+cu128", "torch==2.9.*", "torch2.9.cu128"),
        ("2.14.1", "torch==2.14.*", "torch2.14"),
    ],
)
def test_torch_is_found_where_the_wheel_will_be_installed(
    hidden_torch: Path, version: str, requirement: str, label: str
) -> None:
    environment_with(hidden_torch, version)
    torch = build_backend.find_torch()
    assert torch is not None
    assert (torch.requirement, torch.label) == (requirement, label)
    assert (torch.folder, torch.is_importable) == (str(hidden_torch), False)
    assert build_backend.TORCH_RANGE not in build_backend.get_requires_for_build_wheel()


@pytest.mark.usefixtures("hidden_torch")
def test_a_build_asks_for_torch_where_none_is_installed() -> None:
    assert build_backend.TORCH_RANGE in build_backend.get_requires_for_build_wheel()
    assert build_backend.TORCH_RANGE in build_backend.get_requires_for_build_editable()


def test_all_missing_libraries_are_said_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *("cmake", "-S", str(ROOT), "-B", str(tmp_path), "-DGS_BUILD_MODULE=OFF"),
            *(
                "-DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON",
                "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON",
            ),
        ],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "gpushare needs the C++ libraries nlohmann_json, CLI11, which are not here" in said
    assert "apt-get install nlohmann-json3-dev libcli11-dev" in said


def test_a_missing_compiler_is_one_sentence(sources: Path) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=sources,
        env=os.environ | {"CXX": "no-such-compiler"},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr == (
        "a C++20 compiler is needed to build gpushare, and there is no no-such-compiler: "
        "apt-get install g++ (12 or later), or name yours with CXX=...\n"
    )
