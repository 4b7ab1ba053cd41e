"""A training run that is moved out and back while each call of the driver fails in turn.

Run by test_driver_failures.py, which reads the JSON object that it prints last.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import threading

import torch
from torch import nn

import gpushare
from gpushare import _native
from gpushare.errors import GpushareError
from tests.cuda import fake

OUT_OF_MEMORY = 2
UNKNOWN = 999
ERRORS = (OUT_OF_MEMORY, UNKNOWN)
STEPS = 6
# More than torch and the allocator make by themselves.
TRIES = 10

# What gpushare calls of the driver, as it looks it up.
_NAMES = (fake.ROOT / "csrc" / "vm" / "cuda" / "cuda_driver.cpp").read_text()
FUNCTIONS = sorted(set(re.findall(r'"(cu[A-Z]\w+)", \d+\)', _NAMES)))


class Training:
    """A small MLP under Adam."""

    def __init__(self) -> None:
        """Makes it on the device."""
        torch.manual_seed(1)
        self.model = nn.Sequential(nn.Linear(512, 768), nn.ReLU(), nn.Linear(768, 512)).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.num_steps = 0

    def step(self) -> None:
        """Trains on one batch."""
        batch = torch.full((8, 512), 0.01 * self.num_steps).cuda()
        self.num_steps += 1
        self.optimizer.zero_grad()
        (self.model(batch) - batch).square().sum().backward()
        self.optimizer.step()

    def digest(self) -> str:
        """Of all that lasts."""
        whole = hashlib.sha256()
        for parameter in self.model.parameters():
            for tensor in (parameter, parameter.grad, *self.optimizer.state[parameter].values()):
                whole.update(tensor.detach().cpu().numpy().tobytes())
        return whole.hexdigest()


class Moves:
    """Spills and restores with a fault, and what they said."""

    def __init__(self, training: Training) -> None:
        """From here on the memory must come back as it is now."""
        self._training = training
        self._native = _native.load()
        self.wrong: list[str] = []
        self.messages: dict[str, str] = {}
        self.num_faults = 0

    def count(self) -> dict[str, int]:
        """How often each function is called by one spill and restore."""
        fake.reset_calls()
        self._native.spill_and_restore()
        return {name: fake.num_calls(name) for name in FUNCTIONS if fake.num_calls(name) > 0}

    def fail(self, faults: dict[str, int], error: int) -> None:
        """One spill and restore with these faults; then all must be as before."""
        name = f"{faults} {error}"
        digest, used = self._training.digest(), fake.used_bytes()
        self.num_faults += 1
        for function, nth in faults.items():
            fake.fail(function, nth, error)
        try:
            self._native.spill_and_restore()
        except (torch.OutOfMemoryError, GpushareError) as failure:
            self.messages[name] = f"{type(failure).__name__}: {failure}"
            if "CUDA_ERROR" not in str(failure):
                self.wrong.append(f"{name}: does not say what failed: {failure}")
        for function in faults:
            fake.fail(function, 0, 0)
        self._bring_back(name)
        if fake.violations():
            self.wrong.append(f"{name}: {fake.violations()[0]}")
            fake.clear_violations()
        elif self._training.digest() != digest:
            self.wrong.append(f"{name}: other bytes")
        if fake.used_bytes() != used:
            self._native.spill_and_restore()  # gives back what the driver did not take
        if fake.used_bytes() != used:
            self.wrong.append(f"{name}: {used} bytes were in use, now {fake.used_bytes()}")

    # As the next iteration does.
    def _bring_back(self, name: str) -> None:
        try:
            self._native.begin_iteration()
            self._native.end_iteration("explicit", False)
        except RuntimeError as failure:
            self.wrong.append(f"{name}: does not come back: {failure}")


class Growth:
    """Segments that torch asks for while the driver fails."""

    SIZE = 24 << 20
    NUM_PIECES = 2  # of 16 MiB at most
    FUNCTIONS = ("cuMemCreate", "cuMemMap", "cuMemSetAccess")

    def __init__(self) -> None:
        """Nothing has failed yet."""
        self.errors: dict[str, str] = {}

    def fail(self, function: str, nth: int, error: int) -> None:
        """One allocation with this fault, and one without."""
        used = self._used()
        fake.fail(function, nth, error)
        self._allocate(f"{function}:{nth}:{error}")
        fake.fail(function, 0, 0)
        self._allocate(f"after {function}:{nth}:{error}")
        if self._used() != used:
            self.errors[f"{function}:{nth}:{error}"] = f"{used} bytes, then {self._used()}"

    def fill_device(self) -> None:
        """Allocations while somebody else has the rest of the device: for good, and not."""
        driver = ctypes.CDLL(str(fake.folder() / "libcuda.so.1"))
        taken, context = ctypes.c_uint64(), ctypes.c_void_p()
        size = ctypes.c_size_t(torch.cuda.get_device_properties(0).total_memory - self._used())
        assert driver.cuCtxGetCurrent(ctypes.byref(context)) == 0
        assert driver.cuMemAlloc_v2(ctypes.byref(taken), size) == 0
        self._allocate("full")
        fake.reset_calls()

        has_ended = threading.Event()

        def give_back() -> None:
            while fake.num_calls("cuMemCreate") < TRIES and not has_ended.wait(0.01):
                pass
            assert driver.cuCtxSetCurrent(context) == 0
            assert driver.cuMemFree_v2(taken) == 0

        other = threading.Thread(target=give_back)
        other.start()
        self._allocate("full for a moment")
        has_ended.set()
        other.join()

    def _allocate(self, name: str) -> None:
        try:
            torch.empty(self.SIZE, dtype=torch.uint8, device="cuda").fill_(1)
        except Exception as failure:
            self.errors[name] = f"{type(failure).__name__}: {failure}"

    @staticmethod
    def _used() -> int:
        torch.cuda.empty_cache()
        return fake.used_bytes()


def main() -> None:
    """Prints {"digest": ..., "alone": ..., "wrong": [...], ...}."""
    fake.install_ops()
    fake.set_late(True)
    training = Training()  # before the job, so that it may move
    job = gpushare.register(name="failing")
    for _ in range(STEPS // 2):
        with job.iteration():
            training.step()
    moves = Moves(training)
    # Only the first spill calls these.
    moves.fail({"cuMemHostRegister": 1, "cuStreamCreate": 1}, OUT_OF_MEMORY)
    counts = moves.count()
    for function, count in counts.items():
        for nth in range(1, count + 1):
            for error in ERRORS:
                moves.fail({function: nth}, error)
    growth = Growth()
    with job.iteration():
        for function in Growth.FUNCTIONS:
            for error in ERRORS:
                growth.fail(function, 1, error)
        growth.fail("cuMemCreate", Growth.NUM_PIECES, UNKNOWN)
        growth.fill_device()
    while training.num_steps < STEPS:
        with job.iteration():
            training.step()
    result = {
        "digest": training.digest(),
        "counts": counts,
        "num_faults": moves.num_faults,
        "messages": moves.messages,
        "wrong": moves.wrong,
        "growth": growth.errors,
        "violations": fake.violations(),
    }
    job.close()
    result["alone"] = alone()
    print(json.dumps(result), flush=True)


def alone() -> str:
    """The digest of a run that nobody moved."""
    training = Training()
    for _ in range(STEPS):
        training.step()
    return training.digest()


if __name__ == "__main__":
    main()
