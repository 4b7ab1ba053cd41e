"""Which cells of a notebook wait for the device, as `%load_ext gpushare` decides."""

from __future__ import annotations

import ast

import pytest

inputtransformer2 = pytest.importorskip("IPython.core.inputtransformer2")
jupyter = pytest.importorskip("gpushare.integrations.jupyter", reason="needs IPython")


@pytest.mark.parametrize(
    ("cell", "uses"),
    [
        ("model(x)", True),
        ("print('%gpushare park')", True),
        ("%time model(x)", True),
        ("%%time\nmodel(x)", True),
        ("%gpushare\nmodel(x)", True),
        ("!gpushare status\nmodel(x)", True),
        ("model(x)\n%gpushare park", True),
        ("", False),
        ("%gpushare", False),
        ("%gpushare park", False),
        ("!gpushare status", False),
        ("jobs = !gpushare ps", False),
        ("%%bash\ngpushare status\ngpushare why 1", False),
        ("%gpushare\n!gpushare why {job}", False),
        # What follows a park works without the device.
        ("%gpushare park\ntable = frame.groupby('user').sum()", False),
    ],
)
def test_a_cell_that_looks_at_jobs_moves_no_memory(cell: str, uses: bool) -> None:
    source = inputtransformer2.TransformerManager().transform_cell(cell)
    assert jupyter.uses_device(ast.parse(source)) is uses
