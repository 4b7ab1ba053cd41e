"""gpushare's allocator under real torch, in processes of its own, without a coordinator."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("module_is_built")

TRAIN = """
    import hashlib
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(8 * 14 * 14, 32), torch.nn.LayerNorm(32), torch.nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters())
    digest = hashlib.sha256()
    for _ in range(8):
        optimizer.zero_grad()
        out = model(torch.randn(16, 3, 16, 16))
        loss = torch.nn.functional.cross_entropy(out, torch.randint(0, 10, (16,)))
        loss.backward()
        optimizer.step()
        digest.update(loss.detach().numpy().tobytes())
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    print(digest.hexdigest())
"""


def test_training_is_bit_equal_to_stock_torch(run_forked):
    ours = run_forked("import gpushare" + TRAIN.replace("\n    ", "\n"))
    stock = run_forked(TRAIN)
    assert ours.stdout == stock.stdout != ""


def test_tensors_lie_in_the_reserved_range_and_are_counted(run_forked):
    run_forked(
        """
        import gpushare, torch
        from gpushare import _C, stats
        first, size = _C.reserved_range()
        before = stats.memory_allocated()
        x = torch.empty(1 << 20, dtype=torch.uint8)
        assert first <= x.data_ptr() < first + size
        assert x.data_ptr() % 64 == 0
        assert stats.memory_allocated() - before == 1 << 20
        assert stats.memory_reserved() >= stats.memory_allocated()
        assert stats.max_memory_allocated() >= stats.memory_allocated()
        blocks = [b for s in stats.memory_snapshot() for b in s["blocks"]]
        (block,) = [b for b in blocks if b["address"] == x.data_ptr()]
        assert block["state"] == "active_allocated" and block["requested_size"] == 1 << 20
        del x
        assert stats.memory_allocated() == before
        assert stats.max_memory_allocated() >= before + (1 << 20)
        stats.reset_peak_memory_stats()
        assert stats.max_memory_allocated() == before
        stats.reset_accumulated_memory_stats()
        assert stats.memory_stats()["allocation.all.allocated"] == 0
        reserved = stats.memory_reserved()
        given = stats.empty_cache()
        assert given > 0 and stats.memory_reserved() == reserved - given
        """
    )


def test_the_keys_are_those_of_torch_cuda(run_forked):
    run_forked(
        """
        import itertools, re
        import gpushare, torch
        from gpushare import stats
        wanted = set()
        documented = set(re.findall(r'"([a-z_.{},]+)"', torch.cuda.memory_stats.__doc__))
        # Graph pools, which there are not on a CPU.
        for name in documented - {"_", "reserved_bytes_by_private_pools"}:
            # The text says allocated, the keys say allocation.
            name = name.replace("allocated.{all", "allocation.{all")
            parts = [part.strip("{}").split(",") for part in name.split(".")]
            wanted |= {".".join(key) for key in itertools.product(*parts)}
        assert len(wanted) > 100
        assert wanted <= set(stats.memory_stats()), wanted - set(stats.memory_stats())
        """
    )


def test_without_memory_it_is_torchs_own_error(run_forked):
    run_forked(
        """
        import gpushare, torch
        from gpushare import stats
        x = torch.empty(4 << 20, dtype=torch.uint8)
        try:
            torch.empty(32 << 20, dtype=torch.uint8)
        except torch.OutOfMemoryError as error:
            text = str(error)
        assert "32.0 MiB" in text and text.startswith("gpushare: "), text
        assert stats.memory_stats()["num_ooms"] == 1
        y = torch.empty(4 << 20, dtype=torch.uint8)
        for size in (-1, -(1 << 40)):
            try:
                torch.empty(size)
            except RuntimeError:
                pass
            else:
                raise AssertionError(size)
        """,
        capacity="16MiB",
    )


def test_empty_tensors_have_no_memory(run_forked):
    run_forked(
        """
        import gpushare, torch
        from gpushare import stats
        before = stats.memory_stats()["allocation.all.allocated"]
        x = torch.empty(0)
        assert x.data_ptr() == 0
        assert stats.memory_stats()["allocation.all.allocated"] == before
        x.resize_(1000)
        assert stats.memory_stats()["allocation.all.allocated"] == before + 1
        """
    )


def test_memory_that_is_not_ours_goes_back_to_its_owner(run_forked):
    run_forked(
        """
        import torch
        older = [torch.ones(1000), torch.ones(10, 10).to_mkldnn()]
        import gpushare
        from gpushare import stats
        del older
        array_backed = torch.frombuffer(bytearray(b"12345678"), dtype=torch.uint8)
        shared = torch.ones(100).share_memory_()
        storage = torch.UntypedStorage(100)
        pair = torch.ones(10, 10).to_mkldnn()
        del array_backed, shared, storage, pair
        """
    )


def test_numpy_sees_the_same_memory(run_forked):
    pytest.importorskip("numpy")
    run_forked(
        """
        import gpushare, torch
        x = torch.zeros(1000)
        view = x.numpy()
        x += 1
        assert view.sum() == 1000
        del x
        y = torch.zeros(1000)
        assert view.sum() == 1000
        """
    )


def test_saved_tensors_come_back(run_forked):
    run_forked(
        """
        import io, gpushare, torch
        x = torch.randn(100_000)
        file = io.BytesIO()
        torch.save({"x": x}, file)
        file.seek(0)
        assert torch.equal(torch.load(file)["x"], x)
        """
    )


def test_any_thread_may_allocate_and_free(run_forked):
    run_forked(
        """
        import queue, threading
        import gpushare, torch
        from gpushare import stats
        torch.set_num_threads(1)
        before = stats.memory_allocated()
        tensors, errors = queue.SimpleQueue(), []

        def make():
            for i in range(300):
                tensors.put((i, torch.full((i + 1,), float(i))))

        def check():
            for _ in range(300):
                i, x = tensors.get()
                if not bool((x == i).all()):
                    errors.append(i)

        threads = [threading.Thread(target=f) for f in (make, check) * 4]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not errors
        assert stats.memory_allocated() == before
        """
    )


def test_forked_children_leave_the_parents_memory_alone(run_forked):
    run_forked(
        """
        import os, gpushare, torch
        from gpushare import _native, stats
        torch.set_num_threads(1)
        kept = [torch.full((1000,), float(i)) for i in range(64)]
        pid = os.fork()
        if pid == 0:
            assert not _native.is_installed()
            for x in kept:
                x += 1000
            made = [torch.full((1000,), -1.0) for _ in range(256)]
            ok = all(bool((x == i + 1000).all()) for i, x in enumerate(kept))
            first, size = gpushare._C.reserved_range()
            ok &= not any(first <= x.data_ptr() < first + size for x in made)
            del kept, made
            os._exit(0 if ok else 1)
        _, status = os.waitpid(pid, 0)
        assert status == 0
        assert all(bool((x == i).all()) for i, x in enumerate(kept))
        """
    )


def test_data_loader_workers_give_the_same_batches(run_forked):
    run_forked(
        """
        import gpushare, torch
        torch.set_num_threads(1)
        data = torch.arange(4000.0).reshape(1000, 4)

        class Doubling(torch.utils.data.Dataset):
            def __len__(self): return len(data)
            def __getitem__(self, i): return (data[i] * 2).clone()

        loader = torch.utils.data.DataLoader(
            Doubling(), batch_size=50, num_workers=2, multiprocessing_context="fork")
        for _ in range(2):
            assert torch.equal(torch.cat(list(loader)), data * 2)
        assert torch.equal(data, torch.arange(4000.0).reshape(1000, 4))
        """
    )


def test_the_profiler_sees_memory(run_forked):
    run_forked(
        """
        import gpushare, torch
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            x = torch.empty(1 << 20, dtype=torch.uint8)
            del x
        made = [event for event in seen.key_averages() if event.key == "aten::empty"]
        assert made[0].cpu_memory_usage == 1 << 20
        freed = [event for event in seen.events() if event.name == "[memory]"]
        assert sum(event.cpu_memory_usage for event in freed) == -(1 << 20)
        """
    )


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit(0)",
        "threading.Thread(target=lambda: [torch.ones(9), time.sleep(99)], daemon=True).start()",
        "atexit.register(lambda: torch.ones(1000).sum())",
        "sys.modules['keep'] = [torch.ones(1000)]; del torch",
        "class K:\n  def __del__(s, t=torch): s.x = t.ones(1000)\nk = K(); k.k = k",
    ],
)
def test_the_process_ends_cleanly_with(run_forked, end):
    code = f"import atexit, sys, threading, time, gpushare, torch\nx = torch.ones(1000)\n{end}\n"
    assert run_forked(code).stderr == ""


def test_memory_survives_being_moved_out_and_back(run_forked):
    run_forked(
        """
        import gpushare, torch
        from gpushare import _C, stats
        torch.manual_seed(0)
        kept = [torch.randn(n) for n in (10, 1000, 1 << 20, 3 << 20)]
        hole = torch.randn(1 << 20)
        copies = [x.numpy().copy() for x in kept]
        places = [x.data_ptr() for x in kept]
        del hole
        for _ in range(3):
            _C.spill_and_restore()
            assert [x.data_ptr() for x in kept] == places
            assert all((x.numpy() == c).all() for x, c in zip(kept, copies))
        stats = gpushare.stats.job_stats()
        assert stats.spilled_total_bytes >= 3 * 16 << 20 and stats.spilled_bytes == 0
        assert stats.dropped_total_bytes > 0
        """
    )
