"""What a job says of memory that cannot move, in processes of its own."""

from __future__ import annotations

import numpy
import pytest
import torch

from gpushare._torch.immovable import immovable_bytes


def test_each_storage_outside_of_the_range_counts_once():
    tensor = torch.zeros(100)
    address = tensor.untyped_storage().data_ptr()
    tensors = [tensor, tensor[10:], torch.zeros(5, device="meta"), torch.zeros(0)]
    assert immovable_bytes(tensors, (1 << 60, 4096)) == 400
    assert immovable_bytes(tensors, (address - 64, 4096)) == 0


def test_tensors_without_memory_are_passed_over():
    lazy = torch.nn.LazyLinear(3).weight
    sparse = torch.eye(3).to_sparse()
    assert immovable_bytes([lazy, sparse], (0, 0)) == 0


SCRIPT = """
    {first}
    {second}
    {third}
    gpushare.register(model, optimizer)
    gpushare.register(model, optimizer)
    """
MODEL = (
    "model = torch.nn.Linear(512, 512, bias=False); "
    "optimizer = torch.optim.Adam(model.parameters()); "
    "model(torch.ones(1, 512)).sum().backward(); optimizer.step()"
)


def test_memory_older_than_the_import_is_named_once(run_python, coordinator):
    code = SCRIPT.format(first="import torch", second=MODEL, third="import gpushare")
    said = run_python(code, **coordinator, report="0").stderr
    assert said == (
        'gpushare: 3.0 MiB of this job\'s memory is older than "import gpushare" (script.py:4), or '
        "not made by torch, and cannot move. Import it first, or use gpushare run\n"
    )


def test_nothing_is_said_where_all_memory_is_ours(run_python, coordinator):
    code = SCRIPT.format(first="import gpushare", second="import torch", third=MODEL)
    assert not run_python(code, **coordinator, report="0").stderr


@pytest.mark.parametrize("is_large", [True, False])
def test_memory_of_others_is_named_if_it_is_much(run_python, coordinator, is_large):
    assert numpy.__version__
    code = f"""
        import gpushare, numpy, torch
        model = torch.nn.Linear(4, 4)
        values = numpy.zeros({(1 << 20) if is_large else 10}, dtype=numpy.float32)
        model.register_buffer("table", torch.from_numpy(values))
        gpushare.register(model)
        """
    said = run_python(code, **coordinator, report="0").stderr
    assert ("4.0 MiB of this job's memory was not made by torch" in said) == is_large
    assert is_large or not said
