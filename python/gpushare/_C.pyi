"""The compiled module. This file is its only description; sizes are bytes, times seconds."""

import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any, TypedDict

import torch

from gpushare._torch.compiled import Compiled

class JobStats(TypedDict):
    """What this process has done and holds, since it attached."""

    job: int
    is_managed: bool
    is_registered: bool
    unmanaged_reason: str
    lease_state: str
    term: int
    iterations: int
    optimizer_steps: int
    leases: int
    reconnects: int
    interruptions: int
    num_cpus: int
    busy_seconds: float
    waited_seconds: float
    moving_seconds: float
    held_seconds: float
    room_bytes: int
    resident_bytes: int
    spilled_bytes: int
    live_bytes: int
    outside_bytes: int
    lane_bytes: int
    donated_bytes: int
    overflow_bytes: int
    dropped_total_bytes: int
    spilled_total_bytes: int
    restored_total_bytes: int
    peak_backed_bytes: int

BUILT_FOR_TORCH: str
"""The "major.minor" of torch this module was compiled against."""

def install(
    *,
    socket_paths: list[str],
    daemon_path: str,
    daemon_args: list[str],
    command: str,
    version: str,
    program: str,
    log_level: str,
    connect_timeout_seconds: float,
    idle_rule_seconds: float,
    idle_spill_seconds: float,
    capacity_bytes: int,
    require: bool = False,
    lane_scrub: bool = False,
    overflow: bool = False,
    lane_strict: bool = False,
    lanes: bool = True,
    passthrough: bool = False,
    reachable: bool = True,
    reachable_in_gate: bool = True,
    device: str = "cpu",
    cuda_index: int = -1,
) -> None:
    """Serves torch's allocations on the device, for the rest of the process.

    cuda_index is the driver's number of a CUDA device, whose segments are supplied from now on;
    below 0, gpushare's caching allocator becomes torch's CPU allocator.

    capacity_bytes is the room of an unmanaged process, 0 for no limit. With require, a job that
    loses its coordinator for good fails at its next iteration. With lane_scrub, memory that the
    job shares is zeroed at each close; with lane_strict, access to it is a fault until the next
    lease; without lanes, the job shares none. With overflow, what is refused room is used in host memory. Without reachable, CUDA
    memory that is spilled is mapped nowhere; without reachable_in_gate, not while the main thread waits in the gate. Idempotent.
    """

def is_installed() -> bool: ...

class CudaDeviceInfo(TypedDict):
    """A CUDA device as the driver names it."""

    index: int
    uuid: str
    name: str
    total_bytes: int
    driver_version: int
    """Of CUDA: 13000 for 13.0."""
    can_reach_spilled: bool
    """Memory of the host can be mapped where spilled memory was."""

def cuda_device_info(index: int) -> CudaDeviceInfo:
    """Starts the driver, and makes no context. Raises GpushareError: no driver, no such device."""

def start_coordinator(
    program: str, socket_path: str, more_args: list[str], timeout_seconds: float
) -> None:
    """Starts one in the background and waits until it listens, or another one there does.

    Raises GpushareError, with what the program said.
    """

def segment_plugin_is_intact() -> bool:
    """Tells whether torch still asks us for its CUDA segments: no other tool has come between."""

def begin_sharing() -> None:
    """This thread's new CUDA memory is the runtime's own, which another process can be given."""

def end_sharing() -> None: ...
def note_capture(is_beginning: bool) -> None:
    """A capture of a CUDA stream begins, or has ended; meanwhile no lease closes."""

def set_log_level(level: str) -> None:
    """debug, info, warn, error or off."""

def attach() -> None:
    """Connects to the coordinator, starting one if there is none. Raises CoordinatorUnreachable."""

def register_job(
    *,
    settings: str,
    name: str,
    group: str,
    elastic_threads: bool,
    fingerprint: int,
    gang: str,
    rank: int,
    ranks: int,
    arbiter: str,
) -> int:
    """Asks for turns; returns the job's number. Raises CoordinatorUnreachable, ValueError.

    ``settings`` is JSON, with the fields of csrc/wire/job_settings.h as messages name them.
    """

def unregister_job(*, is_exiting: bool = False) -> None:
    """No iterations follow. Unless is_exiting, memory comes back from the host tier first."""

def begin_iteration() -> None:
    """The gate, without the GIL. Runs the handlers of signals that come; one that raises ends the wait."""

def safepoint(is_in_backward: bool) -> bool:
    """Waits for the next lease, without the GIL, if this one is wanted back inside the iteration.

    Returns whether this thread works on an iteration: one inside autograd's engine is believed.
    """

def end_iteration(kind: str, is_optimizer_step: bool) -> None:
    """A boundary. kind: explicit, optimizer, scaler, forward, next_forward."""

def is_in_iteration() -> bool: ...
def begin_step() -> int:
    """An optimizer's step begins: waits for late memory, without the GIL. Returns the leases so far."""

def mark_late(addresses: list[int]) -> None:
    """Storages at these addresses are used late in an iteration; addresses of others do nothing."""

def close_lease(kind: str) -> None:
    """Gives the lease back now. kind: explicit, exception."""

def promise_iterations() -> None:
    """This job's iterations are marked: memory may move between them."""

def park() -> None:
    """Memory may move until the next iteration. Gives the lease back."""

def hold() -> None:
    """Memory is in place, and stays there until as many let_go(). Raises OutOfMemoryError."""

def let_go() -> None: ...
def explain(timeout_seconds: float) -> str: ...
def spill_and_restore() -> None: ...
def job_stats() -> JobStats: ...
def memory_stats() -> dict[str, int]:
    """Flat, with the key names of torch.cuda.memory_stats."""

def memory_snapshot() -> list[dict[str, object]]: ...
def reset_peak_memory_stats() -> None: ...
def reset_accumulated_memory_stats() -> None: ...
def empty_cache() -> int: ...
def live_bytes() -> int:
    """Bytes of live blocks of the private arena, resident or spilled; cheap."""

def reserved_range() -> tuple[int, int]:
    """First address and size of the range that all segments lie in."""

def simulate(scenario: str) -> str:
    """Runs a scenario text (csrc/sim/simulator.h) on virtual time and returns its report, JSON.

    Ctrl-C ends it. Raises ValueError, with the line; GpushareError if it does not end.
    """

def simulate_trace(device: str, trace: str, *, jobs: bool = False, leases: bool = False) -> str:
    """The same for the text of a trace (docs/simulator.md), device as in a scenario's device line.

    The report has a row of each job with jobs, and one of each lease with leases.
    """

def policy_names() -> list[str]:
    """Of the policies there are, in the order of the documentation."""

class ModuleCalls:
    """As ``torch.nn.Module._compiled_call_impl``: how the calls of each module are made.

    An attribute that Module.compile sets keeps its place in the module's __dict__. What torch.compile
    makes of a module is watched with the module. Who reads the attribute in other code than
    ``reader`` finds what it would be without us.
    """

    def __init__(self, reader: CodeType, /) -> None: ...
    def watch(self, module: torch.nn.Module, function: Callable[..., Any]) -> None:
        """Its calls are function(module, ...) until ``forget``, before which it must not be freed."""

    def forget(self, identity: int) -> None:
        """The module with this id() is called as without us."""

class Watch:
    """Automatic boundaries of one job: what it is told of goes through the state machine to the gate."""

    def __init__(
        self,
        *,
        gate: object | None,
        has_optimizer: bool,
        captures: set[int],
        mark_state: Callable[[Any], None],
        join: Callable[[], bool] | None,
    ) -> None:
        """gate: an object with the methods of gpushare._torch.gate.Gate; None: this process's own gate.

        has_optimizer: the user named one. captures: not empty while a stream is captured.
        mark_state(optimizer): the state of this optimizer may be new. join(): this process may be
        one of several ranks; True: it was, and is not to be asked again.
        """

    def attach(self) -> None:
        """The functions below report to this watch, in place of another."""

    def detach(self) -> None:
        """They report to nobody, unless another watch is attached."""

    def set_named(self, optimizers: list[weakref.ref[torch.optim.Optimizer]]) -> None:
        """Only the steps of these count; of all optimizers, if there are none."""

    def step(self) -> None:
        """job.step()."""

    def begin_iteration(self) -> None:
        """A block of job.iteration() begins. RuntimeError: inside another one."""

    def end_iteration(self) -> None:
        """The block ends without an exception."""

    def fail(self) -> None:
        """An exception has left the iteration: the lease is given back."""

    def park(self) -> None:
        """No iteration runs from here on."""

    @property
    def persistent_bytes(self) -> int:
        """What was live at the last boundary; 0 if that is not known."""

def call_model(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Makes a call of the job's model, and reports it."""

def call_compiled(
    compiled: Compiled, function: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Calls a compiled function, and reports that as a call of the model where it may be one."""

def step_optimizer(
    step: Callable[..., Any], optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any
) -> Any:
    """Calls step(optimizer, ...), and reports it."""

def watch_blocks(block_ended: Callable[[Any, Any], None]) -> Callable[..., Any]:
    """Returns a function that makes a call of a block of the model.

    After it comes block_ended(args, result), if somebody may want the lease inside an iteration.
    """

def guard_backward(engine: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that calls autograd's engine, and reports an exception that leaves it."""

def scaler_updated() -> None:
    """A GradScaler was updated."""

def exception_uncaught() -> None:
    """An exception has reached the top of the program."""
