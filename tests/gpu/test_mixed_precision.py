"""Mixed precision gives the same bits registered, with all memory moved after each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.gpu.conftest import Run


TRAIN = """
import hashlib
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 16)
).to("cuda")
optimizer = torch.optim.Adam(model.parameters())
is_shared = {is_shared}
job = gpushare.register(model, optimizer) if is_shared else None
scaler = torch.amp.GradScaler("cuda", enabled={is_scaled}, init_scale=2.0**40)
for number in range(12):
    x = torch.randn(64, 512, generator=torch.Generator().manual_seed(number)).to("cuda")
    with torch.autocast("cuda", {dtype}):
        loss = model(x).float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if is_shared:
        spill()
digest = hashlib.sha256()
for parameter in model.parameters():
    digest.update(parameter.detach().cpu().numpy().tobytes())
stats = _native.load().job_stats() if is_shared else {{"iterations": 0, "spilled_total_bytes": 0}}
say(digest=digest.hexdigest(), scale=scaler.get_scale(), **stats)
"""


@pytest.mark.parametrize(
    ("dtype", "is_scaled"), [("torch.bfloat16", False), ("torch.float16", True)]
)
def test_bits_equal_stock(dtype: str, is_scaled: bool, run: Run) -> None:
    program = TRAIN.format(is_shared="{is_shared}", is_scaled=is_scaled, dtype=dtype)
    ours = run(program.replace("{is_shared}", "True"))
    stock = run(program.replace("{is_shared}", "False"), stock=True)
    assert ours["digest"] == stock["digest"]
    assert ours["scale"] == stock["scale"]
    # The scaler starts far too high, so that it skips steps: those are iterations too.
    assert ours["iterations"] == 12
    assert ours["spilled_total_bytes"] > 0
