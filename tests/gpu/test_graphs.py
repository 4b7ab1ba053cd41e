"""CUDA graphs: captured and replayed inside iterations, with memory moved in between."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.gpu.conftest import Run


@pytest.mark.usefixtures("needs_kernels")
def test_replays_compute_after_memory_moved(run: Run) -> None:
    said = run(
        """
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).to("cuda")
        job = gpushare.register(model)
        x = torch.randn(64, 1024, device="cuda")
        side = torch.cuda.Stream()
        with torch.no_grad():
            with job.iteration():
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    model(x)
                torch.cuda.current_stream().wait_stream(side)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    y = model(x)
            place = y.data_ptr()
            is_equal = []
            for number in range(5):
                spill_what_moves()
                with job.iteration():
                    x.copy_(torch.randn(64, 1024, generator=torch.Generator().manual_seed(number)))
                    graph.replay()
                    is_equal.append(torch.allclose(y, model(x), rtol=1e-4, atol=1e-5))
        say(
            is_equal=is_equal,
            is_in_place=y.data_ptr() == place,
            spilled=_native.load().job_stats()["spilled_total_bytes"],
        )
        """
    )
    assert all(said["is_equal"])
    assert said["is_in_place"]
    assert said["spilled"] > 0


def test_a_graphs_pool_stays_where_it_is(run: Run) -> None:
    said = run(
        """
        job = gpushare.register(torch.nn.Linear(8, 8).to("cuda"))
        def spilled():
            spill_what_moves()
            return _native.load().job_stats()["spilled_total_bytes"]
        numbers = torch.arange(8 << 20, dtype=torch.int32)
        def bytes_that_move():
            before = spilled()
            return spilled() - before
        with job.iteration():
            movable = numbers.to("cuda")
        first = bytes_that_move()
        with job.iteration():
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                pooled = torch.empty(8 << 20, dtype=torch.int32, device="cuda")
        second = bytes_that_move()
        say(first=first, second=second, is_equal=torch.equal(movable.cpu(), numbers))
        """
    )
    pool_bytes = 4 * (8 << 20)
    assert said["first"] >= pool_bytes
    # torch makes something small for a first capture, in its default pool.
    assert said["second"] < said["first"] + pool_bytes // 2
    assert said["is_equal"]


@pytest.mark.usefixtures("needs_kernels")
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_training_while_memory_moves(mode: str, run: Run) -> None:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("torch.compile needs Triton, and there is none")
    said = run(
        f"""
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 16)
        ).to("cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        compiled = torch.compile(model, mode={mode!r})
        job = gpushare.register(compiled, optimizer)
        losses = []
        for number in range(8):
            x = torch.randn(64, 512, generator=torch.Generator().manual_seed(number)).to("cuda")
            optimizer.zero_grad(set_to_none=True)
            loss = compiled(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            del loss
            spill_what_moves()
        job.close()
        torch.manual_seed(0)
        reference = torch.nn.Sequential(
            torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 16)
        ).to("cuda")
        optimizer = torch.optim.SGD(reference.parameters(), lr=1e-2)
        expected = []
        for number in range(8):
            x = torch.randn(64, 512, generator=torch.Generator().manual_seed(number)).to("cuda")
            optimizer.zero_grad(set_to_none=True)
            loss = reference(x).square().mean()
            loss.backward()
            optimizer.step()
            expected.append(loss.item())
        say(
            losses=losses,
            expected=expected,
            spilled=_native.load().job_stats()["spilled_total_bytes"],
        )
        """
    )
    # Other kernels than eager's: close, and not equal.
    assert said["losses"] == pytest.approx(said["expected"], rel=1e-3)
    assert said["spilled"] > 0


@pytest.mark.usefixtures("needs_kernels")
def test_graphed_callables_train_while_memory_moves(run: Run) -> None:
    said = run(
        """
        def train(is_graphed):
            torch.manual_seed(0)
            model = torch.nn.Sequential(
                torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 16)
            ).to("cuda")
            called = model
            if is_graphed:  # before register: the other way round has not been tried
                sample = torch.randn(64, 512, device="cuda")
                called = torch.cuda.make_graphed_callables(model, (sample,))
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
            job = gpushare.register(called, optimizer)
            losses = []
            for number in range(6):
                x = torch.randn(64, 512, generator=torch.Generator().manual_seed(number)).to("cuda")
                optimizer.zero_grad(set_to_none=True)
                loss = called(x).square().mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                del loss
                spill_what_moves()
            job.close()
            return losses
        losses = train(True)
        spilled = _native.load().job_stats()["spilled_total_bytes"]
        say(losses=losses, expected=train(False), spilled=spilled)
        """
    )
    assert said["losses"] == pytest.approx(said["expected"], rel=1e-3)
    assert said["spilled"] > 0


@pytest.mark.usefixtures("needs_kernels")
def test_a_whole_step_in_a_graph_trains_while_memory_moves(run: Run) -> None:
    said = run(
        """
        job = gpushare.register()
        def make():
            torch.manual_seed(0)
            model = torch.nn.Sequential(
                torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 16)
            ).to("cuda")
            return model, torch.optim.SGD(model.parameters(), lr=1e-2)
        def batch(number):
            return torch.randn(64, 512, generator=torch.Generator().manual_seed(number))
        def step(model, optimizer, x):
            optimizer.zero_grad(set_to_none=True)
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss
        with job.iteration():
            model, optimizer = make()
            x = batch(0).to("cuda")
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    step(model, optimizer, x)
            torch.cuda.current_stream().wait_stream(side)
            optimizer.zero_grad(set_to_none=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                loss = step(model, optimizer, x)
        losses = []
        for number in range(5):
            spill_what_moves()
            with job.iteration():
                x.copy_(batch(number))
                graph.replay()
                losses.append(loss.item())
        expected = []
        with job.iteration():
            model, optimizer = make()
            for number in (0, 0, 0, *range(5)):
                expected.append(step(model, optimizer, batch(number).to("cuda")).item())
        say(
            losses=losses,
            expected=expected[3:],
            spilled=_native.load().job_stats()["spilled_total_bytes"],
        )
        """
    )
    assert said["losses"] == pytest.approx(said["expected"], rel=1e-3)
    assert said["spilled"] > 0
