"""The wheel works where neither a compiler nor the libraries are that it was built with."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
import torch

from tests.install.conftest import Installed, call

MINOR = ".".join(torch.__version__.split(".")[:2])

JOB = """
import gpushare, torch
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
job = gpushare.register(model, optimizer)
for _ in range(3):
    model(torch.ones(4, 32)).sum().backward()
    optimizer.step()
print(gpushare.__file__, job.is_managed, job.stats().iterations)
"""


def loaded_libraries(program: Path, search: Path) -> dict[str, str]:
    """The shared libraries that the loader takes for a program, by name."""
    printed = call("ldd", program, LD_LIBRARY_PATH=str(search))
    lines = [line.split(" => ") for line in printed.splitlines() if " => " in line]
    return {name.strip(): path.split(" (")[0] for name, path in lines}


def test_it_is_for_one_torch_and_many_machines(installed: Installed) -> None:
    assert f"torch{MINOR}" in installed.wheel.name
    assert "manylinux" in installed.wheel.name
    metadata = next(installed.packages.glob("torch_gpushare-*.dist-info/METADATA")).read_text()
    assert f"Requires-Dist: torch=={MINOR}.*" in metadata


def test_it_brings_the_libraries_that_are_not_everywhere(installed: Installed) -> None:
    torch_libraries = Path(torch.__file__).parent / "lib"
    module = next(installed.packages.glob("gpushare/_C*.so"))
    for program in (module, installed.packages / "gpushare" / "bin" / "gpushared"):
        found = loaded_libraries(program, torch_libraries)
        strange = {name: path for name, path in found.items() if "fmt" in name or "spdlog" in name}
        assert strange, found
        for path in strange.values():
            assert Path(path).is_relative_to(installed.folder), found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide the system's files")
def test_a_job_shares_without_the_system_s_libraries(installed: Installed, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    folder = Path("/usr/lib/x86_64-linux-gnu")
    libraries = [*folder.glob("libfmt.so.*"), *folder.glob("libspdlog.so.*")]
    assert libraries
    hidden = {path.resolve(strict=True) for path in (*libraries, Path("/usr/bin/c++"))}
    hide = " && ".join(f"mount --bind /dev/null {path}" for path in hidden)
    command = shlex.join([str(installed.folder / "bin" / "gpushare"), "run", "--"])
    env = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_")}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{hide} && {command} {installed.python} {script}"],
        env=env | {"XDG_RUNTIME_DIR": str(tmp_path), "GPUSHARE_LINGER": "0s"},
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )
    place = installed.packages / "gpushare" / "__init__.py"
    assert done.stdout == f"{place} True 3\n", done.stderr
