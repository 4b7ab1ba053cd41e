"""PyTorch's caching allocator and memory functions on the fake device."""

from __future__ import annotations

from tests.cuda import child, fake

MIB = 1 << 20


def _empty(mib):
    import torch

    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def allocates(parent):
    import torch

    seen = {"devices": torch.cuda.device_count(), "free": torch.cuda.mem_get_info()}
    tensor = _empty(20)
    seen["poison"] = tensor[:100].cpu().unique().tolist()
    seen["allocated"] = torch.cuda.memory_allocated()
    seen["used"] = fake.used_bytes()
    other = torch.ones(1000, device="cuda:1")
    seen["used_on_other"] = fake.used_bytes(1)
    seen["copied_over"] = torch.equal(other.to("cuda:0").cpu(), other.cpu())
    del tensor, other
    torch.cuda.empty_cache()
    seen["used_at_end"] = fake.used_bytes()
    return seen


def test_memory_is_counted_as_torch_counts_it():
    seen = child.run(allocates, capacity_bytes=64 * MIB, num_devices=2, context_bytes=2 * MIB)
    assert seen["devices"] == 2
    assert seen["free"] == [62 * MIB, 64 * MIB]
    assert seen["poison"] == [0xA5]
    assert seen["allocated"] == 20 * MIB
    # The small pool has a segment of its own, for the result of unique() and the like.
    assert seen["used"] in {22 * MIB, 24 * MIB}
    assert seen["used_on_other"] == 4 * MIB
    assert seen["copied_over"]
    assert seen["used_at_end"] == 2 * MIB


def runs_out_of_memory(parent):
    import torch

    live = [_empty(20) for _ in range(3)]
    del live[1]
    larger = _empty(24)  # only after the cached segment is given back
    retries = torch.cuda.memory_stats()["num_alloc_retries"]
    try:
        _empty(24)
    except torch.OutOfMemoryError as error:
        message = str(error)
    del larger
    _empty(24)
    return {"retries": retries, "message": message}


def test_running_out_of_memory_is_torchs_own_error():
    seen = child.run(runs_out_of_memory, capacity_bytes=64 * MIB)
    assert seen["retries"] == 1
    assert "CUDA out of memory. Tried to allocate 24.00 MiB" in seen["message"]
    assert "this process has 64.00 MiB memory in use" in seen["message"]


def meets_a_failure(parent):
    fake.fail("cudaMalloc", 1, 2)
    tensor = _empty(20)
    num_calls = fake.num_calls("cudaMalloc")
    fake.fail("cudaMalloc", 1, 3)
    try:
        _empty(30)
    except RuntimeError as error:
        message = str(error)
    return [num_calls, tensor.numel(), message]


def test_an_injected_failure_is_met_by_torch():
    num_calls, size, message = child.run(meets_a_failure)
    assert (num_calls, size) == (2, 20 * MIB)  # torch tries again
    assert "initialization error" in message


def saves_and_pins(parent, path):
    import torch

    source = torch.randn(1000)
    on_device = source.cuda()
    torch.save(on_device, path)
    pinned = torch.empty(1000).pin_memory()
    pinned.copy_(on_device, non_blocking=True)
    torch.cuda.synchronize()
    return {
        "loaded": torch.equal(torch.load(path, map_location="cuda").cpu(), source),
        "is_pinned": pinned.is_pinned(),
        "copied": torch.equal(pinned, source),
        "printed": str(torch.ones(2, device="cuda")),
        "strided": torch.equal(source.view(10, 100).t().cuda().cpu(), source.view(10, 100).t()),
        "converted": torch.equal(source.cuda().double().cpu(), source.double()),
    }


def test_tensors_are_saved_pinned_and_converted(tmp_path):
    seen = child.run(saves_and_pins, str(tmp_path / "tensor.pt"))
    assert seen.pop("printed") == "tensor([1., 1.], device='cuda:0')"
    assert all(seen.values()), seen


def reads_what_is_unmapped(parent):
    import torch

    # A tensor over memory that is then taken away. Nothing of torch's own does that.
    tensor = _empty(20)
    address = tensor.data_ptr()
    fake.free_under_torch(address)
    messages = []
    for use in (tensor.neg_, tensor[5].item, tensor.cpu):
        try:
            use()
        except RuntimeError as error:
            messages.append(str(error).splitlines()[0])
    still_works = torch.ones(3, device="cuda").sum().item()
    return [messages, fake.violations(), still_works]


def test_memory_that_is_gone_is_an_illegal_access_and_not_a_crash():
    messages, violations, still_works = child.run(reads_what_is_unmapped)
    assert messages == ["CUDA error: an illegal memory access was encountered"] * 3
    assert len(violations) == 3
    assert "which is not mapped" in violations[0]
    assert still_works == 3
