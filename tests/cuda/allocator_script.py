"""A script that uses torch's CUDA allocator in all its ways; says what torch shows after each part.

Run by test_torchs_own_view.py, on stock torch and on gpushare: it writes one JSON object. With
GPUSHARE_DISABLE=1 gpushare is not there at all; else the script is a job, each part an iteration.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Callable
from typing import Any

import torch

from tests.cuda import fake

MIB = 1 << 20
IS_SHARED = os.environ.get("GPUSHARE_DISABLE") != "1"
Say = dict[str, Any]


def _bytes(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def sizes() -> Say:
    """Both of torch's pools, its own segment sizes, and what is larger than any of them."""
    wanted = [1, 512, 513, 100_000, MIB, MIB + 1, 3 * MIB, 9 * MIB, 10 * MIB, 11 * MIB, 21 * MIB]
    kept = [_bytes(size) for size in wanted]
    del kept[1::2]
    kept += [_bytes(size) for size in (700, 2 * MIB, 12 * MIB)]
    return _view()


def cache() -> Say:
    """What is freed stays in the cache until it is emptied."""
    said = _view()
    torch.cuda.empty_cache()
    return said | {"emptied": _view()}


def side_stream() -> Say:
    """Blocks of one stream do not serve another."""
    side = torch.cuda.Stream()
    first = _bytes(4 * MIB)
    address = first.data_ptr()
    del first
    with torch.cuda.stream(side):
        other = _bytes(4 * MIB)
    again = _bytes(4 * MIB)
    return {"reused": [other.data_ptr() == address, again.data_ptr() == address]} | _view()


def record_stream() -> Say:
    """A block is reused when the stream that it is recorded on has done its work, not before."""
    side = torch.cuda.Stream()
    used = _bytes(6 * MIB)
    address = used.data_ptr()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        used.fill_(1)
    used.record_stream(side)
    del used
    early = _bytes(6 * MIB)
    said = _view()
    torch.cuda.synchronize()
    late = _bytes(6 * MIB)
    reused = [early.data_ptr() == address, late.data_ptr() == address]
    return said | {"reused": reused, "after": _view()}


def threads() -> Say:
    """Allocations and frees of several threads; a block is freed by another than made it."""
    kept: list[torch.Tensor] = []

    def allocate(size: int) -> None:
        kept.extend(_bytes(size) for _ in range(5))

    for number in range(1, 5):
        thread = threading.Thread(target=allocate, args=(number * 700_000,))
        thread.start()
        thread.join()
    del kept[::3]
    return _view()


def pool() -> Say:
    """A pool of the user's, which keeps its own segments."""
    own = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(own):
        inside = [_bytes(3 * MIB), _bytes(1000)]
    outside = _bytes(3 * MIB)
    of_pool = [segment["total_size"] for segment in own.snapshot()]
    said = _view() | {"of_pool": sorted(of_pool)}
    del inside, outside, own
    torch.cuda.empty_cache()
    return said | {"after": _view()}


def pinned() -> Say:
    """Host memory of torch's other caching allocator, and copies in both directions."""
    host = torch.arange(MIB, dtype=torch.int32).pin_memory()
    device = host.to("cuda", non_blocking=True)
    back = torch.empty_like(host, device="cpu").pin_memory()
    back.copy_(device, non_blocking=True)
    torch.cuda.synchronize()
    return {"is_same": torch.equal(host, back), "host": _plain(torch.cuda.host_memory_stats())}


def peaks() -> Say:
    """The highest figures, from the start, and from a moment on."""
    before = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    kept = _bytes(5 * MIB)
    after = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    torch.cuda.reset_accumulated_memory_stats()
    del kept
    return {"peaks": [*before, *after]} | _view()


def out_of_memory() -> Say:
    """More than the device has; and what fits only in place of what torch keeps for later."""
    total = torch.cuda.mem_get_info()[1]
    kept = _bytes(total // 4)
    cached = _bytes(total // 3)
    del cached
    texts = [_text_of_failure(total), _text_of_failure(total * 7 // 8)]
    fits = _bytes(total // 2)
    del kept, fits
    return {"texts": texts} | _view()


def fraction() -> Say:
    """A limit of the user's own."""
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.25)
    text = _text_of_failure(total // 3)
    torch.cuda.set_per_process_memory_fraction(1.0)
    return {"texts": [text]} | _view()


PARTS: list[Callable[[], Say]] = [
    sizes,
    cache,
    side_stream,
    record_stream,
    threads,
    pool,
    pinned,
    peaks,
    out_of_memory,
    fraction,
]


def _text_of_failure(size: int) -> str:
    try:
        _bytes(size)
    except torch.OutOfMemoryError as error:
        return re.sub(r"Process \d+", "Process N", str(error))
    return "no failure"


def _plain(stats: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in stats.items() if "time" not in key}


def _view() -> Say:
    """All that torch shows: figures, segments and blocks without addresses, free memory."""
    return {
        "stats": _plain(torch.cuda.memory_stats()),
        "summary": torch.cuda.memory_summary(),
        "segments": sorted(_segment(each) for each in torch.cuda.memory_snapshot()),
        "free": list(torch.cuda.mem_get_info()),
    }


_streams: dict[int, int] = {}
_pools: dict[tuple[int, int], int] = {}


def _segment(segment: dict[str, Any]) -> list[Any]:
    """As a list, with streams and pools numbered as they were first seen."""
    stream = _streams.setdefault(segment["stream"], len(_streams))
    pool = _pools.setdefault(tuple(segment["segment_pool_id"]), len(_pools))
    names = ("total_size", "allocated_size", "active_size", "requested_size", "segment_type")
    figures = [segment[name] for name in names]
    blocks = [[block["size"], _requested(block), block["state"]] for block in segment["blocks"]]
    return [stream, pool, *figures, segment["is_expandable"], blocks]


def _requested(block: dict[str, Any]) -> int:
    """0 of a free block: what torch 2.9 has there is of its last use, wherever that was."""
    return 0 if block["state"] == "inactive" else int(block["requested_size"])


def _history() -> list[list[Any]]:
    """What the allocator did, in order."""
    traces = torch.cuda.memory._snapshot()["device_traces"][0]
    return [[entry["action"], entry["size"]] for entry in traces if entry["action"] != "snapshot"]


def _iterations() -> Callable[[], contextlib.AbstractContextManager[Any]]:
    if not IS_SHARED:
        return contextlib.nullcontext
    import gpushare

    job = gpushare.register(name="view")
    assert job.is_managed
    return job.iteration


def _is_ours(tensor: torch.Tensor) -> bool:
    from gpushare import _native

    first, size_bytes = _native.load().reserved_range()
    return bool(first <= tensor.data_ptr() < first + size_bytes)


def main() -> None:
    """Runs all parts."""
    fake.install_ops()
    iteration = _iterations()
    torch.cuda.memory._record_memory_history(context=None)
    said = {}
    for part in PARTS:
        with iteration():
            said[part.__name__] = part()
    said["history"] = _history()
    said["is_ours"] = IS_SHARED and _is_ours(_bytes(MIB))
    said["violations"] = fake.violations()
    print(json.dumps(said))


if __name__ == "__main__":
    if IS_SHARED:
        import gpushare  # noqa: F401
    main()
