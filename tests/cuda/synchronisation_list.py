"""The places where the CUDA path waits, or makes sure of an order: see synchronisations.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Synchronisation:
    """One of them."""

    name: str
    """What it is."""
    guards: str
    """What happens without it."""
    file: str
    line: str
    """Its source text, which stands there once."""
    instead: str = ""
    tests: tuple[str, ...]
    """Each a C++ test program and its test, or a test of pytest's."""


VMM = "csrc/vm/cuda/cuda_vmm.cpp"
COPIES = "csrc/vm/cuda/cuda_copies.cpp"
ROUTER = "csrc/binding/torch/torch_router.cpp"
CLOSE = "csrc/client/gate/lease_close.cpp"
PLUGIN = "csrc/plugin/segment_plugin.cpp"
SHARED = "python/gpushare/_torch/ipc.py"
SHARED_WAIT = "            torch.cuda.synchronize()\n"
SHARED_COPY = "            _give_new_memory(storage, native)\n"
SHARES = "tests/cuda/test_shared_tensors.py::test_the_work_of_other_streams_is_waited_for"
LATE = "tests/cuda/test_late_jobs.py"
MOVES = f"{LATE}::test_a_job_that_moves_at_every_boundary_waits_for_all_that_is_pending"
GAP = f"{LATE}::test_what_the_gap_left_pending_is_waited_for_before_memory_moves"
CAPTURE = f"{LATE}::test_a_lease_that_closes_does_not_break_a_capture"
SAFEPOINTS = "tests/cuda/test_safepoints.py"
INTERRUPTED = f"{SAFEPOINTS}::test_an_interrupted_job_waits_for_what_is_pending_first"
CLOSES = f"{LATE}::test_a_lease_closes_on_an_idle_device"

ALL = (
    Synchronisation(
        name="all waits for the whole device",
        guards="memory moves under the work of the gap, which each of two waits covers",
        file="csrc/vm/cuda/cuda_device.cpp",
        line="  return driver_.to_status(calls().context_synchronize(), what);\n",
        instead="  return driver_.to_status(cuda::kSuccess, what);\n",
        tests=(GAP, MOVES),
    ),
    Synchronisation(
        name="the device is waited for before memory is unmapped",
        guards="kernels on a block that the CPU has freed fault",
        file=VMM,
        line='    GS_RETURN_IF_ERROR(device_.synchronize(describe("unback", address, size)));\n',
        tests=("gs_vm_tests CudaVmm.WaitsForKernelsBeforeItUnmaps",),
    ),
    Synchronisation(
        name="the device is waited for before memory is copied out",
        guards="what kernels have not written yet is lost",
        file=VMM,
        line='  GS_RETURN_IF_ERROR(device_.synchronize(describe("freeze", address, size)));\n',
        tests=(
            "gs_vm_tests CudaVmm.FrozenMemoryHasWhatKernelsWrote",
            "gs_alloc_tests CudaSpill.TakesAlongWhatKernelsHaveNotWrittenYet",
        ),
    ),
    Synchronisation(
        name="unmapped memory is frozen no more",
        guards="what is backed there next is unmapped under its kernels",
        file=VMM,
        line="  GS_RETURN_IF_ERROR(chunks_.take(address, size));\n  thaw(address, size);\n",
        instead="  GS_RETURN_IF_ERROR(chunks_.take(address, size));\n",
        tests=("gs_vm_tests CudaVmm.WaitsOnceForWhatIsFrozenAndThenUnmapped",),
    ),
    Synchronisation(
        name="address space that is given back is frozen no more",
        guards="the same, of whoever gets the addresses next",
        file=VMM,
        line="  thaw(base, size);\n",
        tests=("gs_vm_tests CudaVmm.AddressesThatComeAgainAreNotFrozen",),
    ),
    Synchronisation(
        name="the device is waited for before a failed restore gives memory up",
        guards="it is unmapped under work on it",
        file=VMM,
        line='  if (ready.ok()) ready = device_.synchronize(describe("give up", address, size));\n',
        tests=("gs_vm_tests CudaVmm.WaitsForKernelsBeforeItUnmaps",),
    ),
    Synchronisation(
        name="the device is waited for before shown memory is hidden",
        guards="it is unmapped, and its slot given to others, under the kernels of a stray thread",
        file=VMM,
        line='  GS_RETURN_IF_ERROR(device_.synchronize(describe("hide", address, size)));\n',
        tests=("gs_vm_tests CudaShown.SpilledMemoryShowsItsCopyAndTakesWrites",),
    ),
    Synchronisation(
        name="the device is waited for before shown memory is copied in",
        guards="what kernels of a stray thread have not written yet is lost",
        file=VMM,
        line='  GS_RETURN_IF_ERROR(device_.synchronize("wait for what is shown"));\n',
        tests=(
            "gs_vm_tests CudaShown.KernelsOnWhatIsShownAreWaitedForBeforeItIsCopied",
            "gs_alloc_tests CudaSpill.WhatIsSpilledCanBeReadAndWritten",
        ),
    ),
    Synchronisation(
        name="the device is waited for before shown memory is replaced",
        guards="it is unmapped under the kernels of a stray thread",
        file=VMM,
        line='    GS_RETURN_IF_ERROR(device_.synchronize(describe("bring in", address, size)));\n',
        tests=("gs_vm_tests CudaShown.WhatIsBroughtInReplacesWhatWasShown",),
    ),
    Synchronisation(
        name="nothing is backed where the driver has not unmapped what was shown",
        guards="two allocations at one address",
        file=VMM,
        line="  shown_.retry();\n"
        "  GS_RETURN_IF_ERROR(shown_.check_let_go(address, size));\n"
        "  return chunks_.put(address, size);\n",
        instead="  return chunks_.put(address, size);\n",
        tests=("gs_vm_tests CudaShown.NothingIsPutWhereTheDriverHasNotUnmapped",),
    ),
    Synchronisation(
        name="a copy out is waited for",
        guards="memory is unmapped, and its slot read, before the bytes are there",
        file=COPIES,
        line="  if (code == cuda::kSuccess) code = wait_for(*stream);\n"
        '  return device_.driver().to_status(code, describe("copy out", from, size));\n',
        instead='  return device_.driver().to_status(code, describe("copy out", from, size));\n',
        tests=("gs_vm_tests CudaVmm.FrozenMemoryHasWhatKernelsWrote", MOVES),
    ),
    Synchronisation(
        name="a copy in is waited for",
        guards="kernels read, and the slot is used again, before the bytes are there",
        file=COPIES,
        line="  if (code == cuda::kSuccess) code = wait_for(*stream);\n"
        '  return device_.driver().to_status(code, describe("copy in", to, size));\n',
        instead='  return device_.driver().to_status(code, describe("copy in", to, size));\n',
        tests=("gs_vm_tests CudaVmm.TwoThreadsMoveTheirOwnRanges", MOVES),
    ),
    Synchronisation(
        name="the device is waited for after a copy failed",
        guards="the copy goes on into host memory that others have",
        file=COPIES,
        line='waited = device_.synchronize("wait for the device after a failed copy");\n',
        instead="waited;\n",
        tests=("gs_vm_tests CudaFailure.NothingIsOnItsWayAfterACopyThatFailed",),
    ),
    Synchronisation(
        name="nothing is backed where the driver has not unmapped",
        guards="two allocations at one address",
        file="csrc/vm/cuda/cuda_chunks.cpp",
        line="  Status status = check_let_go(address, size);\n",
        instead="  Status status;\n",
        tests=("gs_vm_tests CudaFailure.WhatCouldNotBeUnmappedIsUnmappedLater",),
    ),
    Synchronisation(
        name="calls are made in relaxed capture mode",
        guards="they break the stream capture of another thread",
        file="csrc/vm/cuda/cuda_device.cpp",
        line="    code = calls.exchange_capture_mode(&capture_mode_);\n    has_set_mode_",
        instead="    has_set_mode_",
        tests=("gs_vm_tests CudaScope.DisturbsNoCaptureOfAnotherThread",),
    ),
    Synchronisation(
        name="a spill waits for the copy before it unmaps",
        guards="memory is unmapped under the copy",
        file="csrc/alloc/residency/spill.cpp",
        line="      Status one = mover_.wait(ticket);\n",
        instead="      Status one;\n      static_cast<void>(ticket);\n",
        tests=("gs_alloc_tests CudaSpill.TakesAlongWhatKernelsHaveNotWrittenYet", MOVES),
    ),
    Synchronisation(
        name="a restore waits for its copies",
        guards="memory is used, and its slots are given to others, before the bytes are there",
        file="csrc/alloc/residency/restore.cpp",
        line="  if (Status copied = wait_for_copies(); status.ok()) status = std::move(copied);\n",
        tests=("gs_alloc_tests Residency.ARestoreEndsAfterItsCopies", MOVES),
    ),
    Synchronisation(
        name="the device drains without the lock",
        guards="whoever wants the lock waits for the device",
        file=ROUTER,
        line='  if (status.ok()) status = device_.synchronize("before the lease closes");\n',
        tests=(CLOSES,),
    ),
    Synchronisation(
        name="the device is idle when the gate has closed",
        guards="what was launched since it drained runs into the next job's lease",
        file=ROUTER,
        line='  if (status.ok()) status = device_.synchronize("close the lease");\n',
        tests=(CLOSES,),
    ),
    Synchronisation(
        name="the device does not drain under a capture",
        guards="the wait breaks the capture",
        file=ROUTER,
        line="  if (num_captures_ > 0) return;\n",
        tests=(CAPTURE,),
    ),
    Synchronisation(
        name="no gate closes under a capture",
        guards="the wait breaks the capture",
        file=ROUTER,
        line="  if (num_captures_ > 0) {\n",
        instead="  if (num_captures_ > 1000) {\n",
        tests=(CAPTURE,),
    ),
    Synchronisation(
        name="a boundary drains first",
        guards="as the drain",
        file=CLOSE,
        line="void Runtime::Impl::close_at_boundary() {\n  drain();\n",
        instead="void Runtime::Impl::close_at_boundary() {\n",
        tests=("gs_client_tests Routing.TheDeviceDrainsWithoutTheLockBeforeABoundaryCloses",),
    ),
    Synchronisation(
        name="a lease that is given up drains first",
        guards="as the drain",
        file=CLOSE,
        line="  drain();\n  MutexLock lock(mu_);\n  // A thread that waits",
        instead="  MutexLock lock(mu_);\n  // A thread that waits",
        tests=("gs_client_tests Routing.TheDeviceDrainsBeforeALeaseThatIsGivenUpCloses",),
    ),
    Synchronisation(
        name="a lease that is taken in the gap drains first",
        guards="as the drain",
        file="csrc/client/client_thread.cpp",
        line="void Runtime::Impl::on_close(const wire::Close& close) {\n  drain();\n",
        instead="void Runtime::Impl::on_close(const wire::Close& close) {\n",
        tests=("gs_client_tests Routing.TheDeviceDrainsBeforeALeaseThatIsTakenInTheGapCloses",),
    ),
    Synchronisation(
        name="a close that is tried again drains first",
        guards="as the drain",
        file=CLOSE,
        line="  drain();\n  MutexLock lock(mu_);\n  if (page() == nullptr ||",
        instead="  MutexLock lock(mu_);\n  if (page() == nullptr ||",
        tests=("gs_client_tests Routing.TheDeviceDrainsBeforeACloseIsTriedAgain",),
    ),
    Synchronisation(
        name="the gate stays closed over memory that did not come back",
        guards="the next iteration's kernels fault",
        file="csrc/client/memory/room.cpp",
        line="    if (is_open) static_cast<void>(close_gate());\n",
        tests=("tests/cuda/test_driver_failures.py",),
    ),
    Synchronisation(
        name="a restore waits for a device that lags behind the books",
        guards="a job fails since another one was killed",
        file="csrc/client/memory/restoring.cpp",
        line="    if (!lag.explains(status, allocator_, residency_.to_restore())) return status;\n",
        instead="    if (!status.ok()) return status;\n",
        tests=(
            "tests/cuda/test_kills.py"
            "::test_memory_of_a_dead_job_that_the_device_still_has_is_waited_for",
        ),
    ),
    Synchronisation(
        name="an allocation waits for a device that lags behind the books",
        guards="a job fails since another one was killed",
        file="csrc/alloc/allocator/segment_store.cpp",
        line="  while (!segment && lag.explains(",
        instead="  while (false && !segment && lag.explains(",
        tests=("tests/cuda/test_driver_failures.py",),
    ),
    Synchronisation(
        name="the device is waited for before a segment is given back",
        guards="its next owner meets kernels of the one before",
        file=PLUGIN,
        line="  if (const CudaError error = synchronize(); error != kCudaSuccess) return error;\n",
        instead="  static_cast<void>(&SegmentPlugin::synchronize);\n",
        tests=("gs_plugin_tests SegmentPlugin.AFreeWaitsForTheDeviceFirst",),
    ),
    Synchronisation(
        name="that wait is for the segment's device",
        guards="the same, where the thread is at another device",
        file=PLUGIN,
        line="    result = real_.set_device(options_.device);\n"
        "    if (result == kCudaSuccess) result = real_.synchronize();\n",
        instead="    result = real_.synchronize();\n",
        tests=("gs_plugin_tests SegmentPlugin.AFreeWaitsForItsOwnDeviceAndLeavesTheThreadsAsItIs",),
    ),
    Synchronisation(
        name="the device is waited for before a tensor moves to be shared",
        guards="what other streams still write is lost",
        file=SHARED,
        line=SHARED_WAIT + SHARED_COPY,
        instead=SHARED_COPY,
        tests=(SHARES,),
    ),
    Synchronisation(
        name="the device is waited for after a tensor has moved to be shared",
        guards="other streams come before the copy, and use the old memory again under it",
        file=SHARED,
        line=SHARED_COPY + SHARED_WAIT,
        instead=SHARED_COPY,
        tests=(SHARES,),
    ),
    Synchronisation(
        name="the device is waited for before a lease is given up inside an iteration",
        guards="what the job has queued runs beside the next holder",
        file="csrc/client/gate/safepoint.cpp",
        line="would run beside the next holder.\n  drain();\n",
        instead="would run beside the next holder.\n",
        tests=(INTERRUPTED,),
    ),
)
