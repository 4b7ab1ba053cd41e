"""The scenes of the demo, in order; what each shows is its title."""

from __future__ import annotations

from gpushare.demo.mode import ALLOCATOR, SHARED, STOCK
from gpushare.demo.probe import UNMANAGED
from gpushare.demo.scene_runner import SceneSetup

_NO_GPUSHARE = {"GPUSHARE_DISABLE": "1"}
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

MOST_SLOWDOWN = 2.0
"""Jobs side by side are stopped when they take longer than this, against one after the other."""

FIXED_SHARE = "a fixed share each"
SHARED_TITLE = "gpushare"
SERIAL = SceneSetup("one after the other", STOCK, _NO_GPUSHARE, is_serial=True)


def fixed_share(budget_bytes: int, num_jobs: int) -> SceneSetup:
    """Each job may use its part of the budget and no more."""
    share = str(budget_bytes // num_jobs)
    return SceneSetup(
        FIXED_SHARE,
        ALLOCATOR,
        {**UNMANAGED, "GPUSHARE_CAPACITY": share},
        ends_at_out_of_memory=True,
        capacity_bytes=budget_bytes,
    )


def side_by_side(serial_seconds: float) -> SceneSetup:
    """All at once, nothing arranged."""
    return SceneSetup(
        "side by side", STOCK, _NO_GPUSHARE, limit_seconds=MOST_SLOWDOWN * serial_seconds
    )


def one_thread_each(serial_seconds: float) -> SceneSetup:
    """All at once, each on one core."""
    return SceneSetup(
        "side by side, 1 thread each",
        STOCK,
        {**_NO_GPUSHARE, **_ONE_THREAD},
        limit_seconds=MOST_SLOWDOWN * serial_seconds,
    )


def shared(job_settings: dict[str, str], budget_bytes: int) -> SceneSetup:
    """All at once under gpushare, in the budget."""
    # Reading the kernel's books costs milliseconds a job, and this scene is timed.
    return SceneSetup(
        SHARED_TITLE, SHARED, job_settings, sample_seconds=0.5, capacity_bytes=budget_bytes
    )


def shared_with_a_kill(job_settings: dict[str, str], budget_bytes: int) -> SceneSetup:
    """The same with a fourth job that is killed in its lease; not timed, so looked at often."""
    return SceneSetup(
        "gpushare, 4th job killed",
        SHARED,
        job_settings,
        sample_seconds=0.05,
        capacity_bytes=budget_bytes,
    )
