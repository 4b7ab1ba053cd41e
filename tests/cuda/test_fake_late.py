"""Late completion under PyTorch: a missing wait is seen, the documented ones are enough."""

from __future__ import annotations

from tests.cuda import child, fake


def uses_another_streams_tensor(parent):
    import torch

    side = torch.cuda.Stream()
    main = torch.cuda.current_stream()
    source = torch.ones(1000, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        made = source * 2
    try:
        made + 1
    except RuntimeError as error:
        message = str(error).splitlines()[0]
    violations = fake.violations()
    fake.clear_violations()
    main.wait_stream(side)
    total = (made + 1).sum().item()
    return [message, violations, total, fake.violations()]


def test_a_missing_wait_between_streams_is_seen():
    message, violations, total, later = child.run(uses_another_streams_tensor, late=True)
    assert message == "CUDA error: an illegal memory access was encountered"
    (violation,) = violations
    assert "aten::add on stream" in violation
    assert "not ordered before it" in violation
    assert total == 3000
    assert later == []


def copies_to_pinned_memory(parent):
    import torch

    host = torch.zeros(1000).pin_memory()
    device = torch.ones(1000, device="cuda")
    host.copy_(device, non_blocking=True)
    too_early = host.sum().item()
    torch.cuda.synchronize()
    in_time = host.sum().item()
    device.copy_(host, non_blocking=True)
    host.fill_(5)  # too early again
    torch.cuda.synchronize()
    return [too_early, in_time, device.sum().item()]


def test_bytes_of_asynchronous_copies_are_late():
    assert child.run(copies_to_pinned_memory, late=True) == [0, 1000, 5000]
    assert child.run(copies_to_pinned_memory, late=False) == [1000, 1000, 1000]


def frees_under_work(parent):
    import torch

    side = torch.cuda.Stream()
    reused = []
    for with_record in (True, False):
        tensor = torch.ones(5 << 20, device="cuda")
        address = tensor.data_ptr()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            tensor.mul_(2)
        if with_record:
            tensor.record_stream(side)
        del tensor
        again = torch.empty(5 << 20, device="cuda")
        reused.append(again.data_ptr() == address)
        try:
            again.zero_()
        except RuntimeError:
            reused.append("illegal")
        torch.cuda.synchronize()
        del again
        torch.cuda.empty_cache()
    return reused


def test_memory_freed_too_early_is_seen_unless_its_use_was_recorded():
    assert child.run(frees_under_work, late=True) == [False, True, "illegal"]


def captures(parent):
    import torch

    tensor = torch.zeros(4, device="cuda")
    states = [torch.cuda.is_current_stream_capturing()]
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        states.append(torch.cuda.is_current_stream_capturing())
        tensor + 1
    states.append(torch.cuda.is_current_stream_capturing())
    message = ""
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.cuda.synchronize()
    except RuntimeError as error:
        message = str(error)
    return [states, message, tensor.sum().item()]


def test_a_capture_says_so_and_refuses_to_wait():
    states, message, total = child.run(captures)
    assert states == [False, True, False]
    assert "captur" in message
    assert total == 0
