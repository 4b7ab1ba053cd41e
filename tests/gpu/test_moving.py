"""Memory leaves the device and comes back: its bytes, streams, pinned copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.gpu.conftest import Run


def test_bytes_and_addresses_survive(run: Run) -> None:
    said = run(
        """
        job = gpushare.register(torch.nn.Linear(8, 8).to("cuda"))
        generator = torch.Generator().manual_seed(1)
        sizes = [1, 511, 513, 1 << 20, (1 << 20) + 1, 3 << 20, machine.size(1 << 30, 40 << 20)]
        originals = [
            torch.randint(256, (n,), dtype=torch.uint8, generator=generator) for n in sizes
        ]
        with job.iteration():
            tensors = [each.to("cuda") for each in originals]
        places = [each.data_ptr() for each in tensors]
        for _ in range(3):
            spill()
        stats = _native.load().job_stats()
        say(
            is_equal=all(torch.equal(a, b.cpu()) for a, b in zip(originals, tensors, strict=True)),
            is_in_place=places == [each.data_ptr() for each in tensors],
            spilled=stats["spilled_total_bytes"],
            restored=stats["restored_total_bytes"],
            live=sum(sizes),
        )
        """
    )
    assert said["is_equal"]
    assert said["is_in_place"]
    assert said["spilled"] >= 3 * said["live"]
    assert said["restored"] >= 3 * said["live"]


def test_work_on_a_users_stream_is_done_before_memory_leaves(run: Run) -> None:
    said = run(
        """
        job = gpushare.register(torch.nn.Linear(8, 8).to("cuda"))
        n = machine.size(4096, 64)
        x = torch.randn(n, n, generator=torch.Generator().manual_seed(1))
        side = torch.cuda.Stream()
        def work():
            on_device = x.to("cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                y = on_device
                for _ in range(20):
                    y = (y * 1.5).sin()
                freed = y + 1
                result = freed * 2
            on_device.record_stream(side)
            return result
        with job.iteration():
            ours = work()
        spill()
        torch.cuda.current_stream().wait_stream(side)
        with job.iteration():
            again = work()
            torch.cuda.current_stream().wait_stream(side)
        say(
            is_equal=torch.equal(ours.cpu(), again.cpu()),
            spilled=_native.load().job_stats()["spilled_total_bytes"],
        )
        """
    )
    assert said["is_equal"]
    assert said["spilled"] > 0


def test_pinned_copies_that_nobody_waited_for(run: Run) -> None:
    said = run(
        """
        job = gpushare.register(torch.nn.Linear(8, 8).to("cuda"))
        n = machine.size(64 << 20, 1 << 20)
        source = torch.randint(1 << 30, (n,), dtype=torch.int32).pin_memory()
        back = torch.empty_like(source).pin_memory()
        is_equal = []
        kept = []
        for number in range(4):
            with job.iteration():
                source.add_(1)
                there = source.to("cuda", non_blocking=True)
                kept.append(there + number)
                back.copy_(there, non_blocking=True)
            spill()  # the copies may be on the way still
            is_equal.append(torch.equal(back, source))
            is_equal.append(torch.equal(kept[-1].cpu(), source + number))
        say(is_equal=is_equal, spilled=_native.load().job_stats()["spilled_total_bytes"])
        """
    )
    assert all(said["is_equal"])
    assert said["spilled"] > 0
