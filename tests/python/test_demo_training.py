"""The demo's models, text and loop on stock torch: real, deterministic, and learning."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from gpushare.demo.models import make_model  # noqa: E402 - needs torch
from gpushare.demo.text import Text, load_text  # noqa: E402
from gpushare.demo.training import Outcome, train  # noqa: E402
from gpushare.demo.workload import QUICK, Workload  # noqa: E402


@pytest.fixture(scope="module")
def text() -> Text:
    return load_text()


def _tiny(workload: Workload) -> Workload:
    size = replace(workload.size, width=32, num_layers=1, num_tokens=16)
    return replace(workload, size=size, batch_size=4, num_iterations=3)


def _train(workload: Workload, text: Text) -> Outcome:
    return train(workload, text, lambda *_: None, lambda _: None)


def test_text_is_the_helps_and_batches_are_shifted_by_one(text: Text) -> None:
    assert len(text.characters) > 300_000
    assert 90 < text.num_symbols < 200
    inputs, targets = text.batch(4, 16, torch.Generator().manual_seed(0))
    assert inputs.shape == targets.shape == (4, 16)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])


@pytest.mark.parametrize("workload", QUICK, ids=[workload.name for workload in QUICK])
def test_same_seed_same_bits(workload: Workload, text: Text) -> None:
    tiny = _tiny(workload)
    one, two = _train(tiny, text), _train(tiny, text)
    assert len(one.losses) == len(one.spans_ns) == 3
    assert (one.losses, one.parameters_hash) == (two.losses, two.parameters_hash)
    other = _train(replace(tiny, seed=9), text)
    assert one.losses != other.losses


def test_learning_rates_part_after_the_first_step(text: Text) -> None:
    fast, slow = (_train(_tiny(workload), text) for workload in QUICK[:2])
    assert fast.losses[0] == slow.losses[0]
    assert fast.losses[1:] != slow.losses[1:]


@pytest.mark.parametrize("workload", [QUICK[0], QUICK[2]], ids=["transformer", "lstm"])
def test_models_learn(workload: Workload, text: Text) -> None:
    longer = replace(_tiny(workload), num_iterations=60, learning_rate=1e-2)
    start = _train(replace(longer, num_iterations=1), text)
    assert _train(longer, text).last_loss < start.last_loss - 0.5


def test_transformer_does_not_see_the_future(text: Text) -> None:
    torch.manual_seed(0)
    model = make_model(text.num_symbols, replace(QUICK[0].size, width=32)).eval()
    inputs = torch.randint(text.num_symbols, (1, 16))
    changed = inputs.clone()
    changed[0, 10:] = 0
    with torch.no_grad():
        assert torch.equal(model(inputs)[0, :10], model(changed)[0, :10])


def test_spans_are_in_order(text: Text) -> None:
    spans = _train(_tiny(QUICK[0]), text).spans_ns
    flat = [moment for span in spans for moment in span]
    assert flat == sorted(flat)
