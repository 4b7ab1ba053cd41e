"""Two processes with PyTorch on one fake device."""

from __future__ import annotations

from tests.cuda import child, fake

MIB = 1 << 20


def holds(parent, mib):
    import torch

    tensor = torch.full((mib * MIB,), 7, dtype=torch.uint8, device="cuda")
    parent.say(fake.used_bytes())
    parent.hear()
    return tensor[0].item()


def takes_what_is_left(parent, mib):
    import torch

    def fits():
        try:
            torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            return False
        return True

    parent.say([fits(), torch.cuda.mem_get_info()[0]])
    parent.hear()
    return [fits(), torch.cuda.mem_get_info()[0]]


def test_one_device_for_two_processes_until_one_is_killed(device_file):
    shared = {"device_file": device_file, "capacity_bytes": 64 * MIB, "context_bytes": 2 * MIB}
    holder = child.start(holds, 40, **shared)
    assert holder.hear() == 42 * MIB
    other = child.start(takes_what_is_left, 30, **shared)
    assert other.hear() == [False, 20 * MIB]
    holder.kill()
    other.say("once more")
    assert other.result() == [True, 32 * MIB]


def gives_a_tensor_away(parent):
    import torch
    import torch.multiprocessing as mp

    context = mp.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    tensor = torch.arange(1000, device="cuda")
    receiver = context.Process(target=doubles_a_tensor, args=(queue, answers))
    receiver.start()
    queue.put(tensor)
    told = answers.get(timeout=60)
    receiver.join()
    return [told, tensor[:3].tolist()]


def doubles_a_tensor(queue, answers):
    import torch

    fake.install_ops()
    tensor = queue.get()
    tensor.mul_(2)
    torch.cuda.synchronize()
    answers.put(tensor.sum().item())
    del tensor


def test_torchs_multiprocessing_shares_a_tensor(device_file):
    assert child.run(gives_a_tensor_away, device_file=device_file) == [999000, [0, 2, 4]]
