"""The page for people in a notebook, cell by cell, in a real kernel beside another job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.first_half_hour.conftest import user_environment
from tests.first_half_hour.page import PATIENCE_SECONDS, Page, Shell

nbformat = pytest.importorskip("nbformat", reason="needs nbclient and ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")

CAPACITY = "64MiB"
"""The kernel fits beside the small neighbour, and not beside the large one."""
NEIGHBOUR = """
import sys
import torch
from torch import nn
width = int(sys.argv[1])
model = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, 512))
optimizer = torch.optim.Adam(model.parameters())
for step in range(20):
    nn.functional.mse_loss(model(torch.ones(128, 512)), torch.zeros(128, 512)).backward()
    optimizer.step()
    optimizer.zero_grad()
print("the neighbour has ended")
"""
SMALL, LARGE = 64, 2048


class Notebook:
    """A kernel of a user, to which cells are given one by one."""

    def __init__(self, home: Path) -> None:
        self._notebook = nbformat.v4.new_notebook()
        self._client = nbclient.NotebookClient(
            self._notebook, timeout=PATIENCE_SECONDS, kernel_name="python3"
        )
        self._client.create_kernel_manager()
        environment = user_environment(home) | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        self._client.start_new_kernel(env=environment, cwd=str(home))
        self._client.start_new_kernel_client()

    def run(self, source: str) -> str:
        """Runs a cell; returns what it printed."""
        cell = nbformat.v4.new_code_cell(source)
        self._notebook.cells.append(cell)
        self._client.execute_cell(cell, len(self._notebook.cells) - 1)
        return "".join(output.get("text", "") for output in cell.outputs)

    def follow(self, page: Page, section: str) -> str:
        """Runs the cells of a section."""
        return "".join(
            self.run(block.text) for block in page.blocks(section) if block.language == "python"
        )

    def close(self) -> None:
        """Ends the kernel."""
        self._client._cleanup_kernel()


def test_notebook(shell: Shell, home: Path) -> None:
    page = Page("how_to/notebook.md")
    (home / "work" / "neighbour.py").write_text(NEIGHBOUR)
    shell.run(f"gpushare coordinator start --capacity {CAPACITY}\n")
    notebook = Notebook(home)
    try:
        for section in ("1.", "2.", "3."):
            notebook.follow(page, section)
        # This cell ends in the middle of an iteration.
        notebook.run("before = [p.detach().clone() for p in model.parameters()]")
        notebook.run("model(torch.ones(128, 512))")
        run = "gpushare run --name neighbour -- python neighbour.py {}\n"
        assert "the neighbour has ended" in shell.run(run.format(SMALL))
        notebook.follow(page, "4.")
        assert "the neighbour has ended" in shell.run(run.format(LARGE))
        seen = notebook.follow(page, "5.")
        lease, _, spilled = seen.split()
        assert lease == "kIdle"
        assert int(spilled) > 0, "the kernel's memory has left"
        assert "notebook" in notebook.run("!gpushare status")
        same = "print(all(map(torch.equal, before, model.parameters())))"
        assert notebook.run(same) == "True\n"
        assert float(notebook.run("print(train(3))")) > 0
        notebook.follow(page, "6.")
        assert "it has no more iterations" in shell.run("gpushare why notebook\n")
    finally:
        notebook.close()
