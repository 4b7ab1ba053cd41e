"""The benchmarks on traces: what their figures are, and how they are called."""

from __future__ import annotations

import pytest

from benchmarks import bench_philly_gangs, bench_trace_salus, learned
from gpushare.simulate import runs


@pytest.fixture
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each policy that is asked for is as much faster as its place in line."""

    def run(_trace: str, policies: list[str], _machine: dict[str, str]) -> list[dict[str, object]]:
        return [
            {
                "policy": policy,
                "completion_seconds": dict.fromkeys(runs.COMPARED, 10.0 / (1 + number)),
                "bound_seconds": 1.0,
                "makespan_seconds": 8.0 / (1 + number),
                "num_jobs": 7,
                "num_finished": 7,
                "wait_seconds": {"worst": 3600.0 * number},
            }
            for number, policy in enumerate(policies)
        ]

    monkeypatch.setattr(runs, "run", run)
    monkeypatch.setattr(learned, "bound_over_srtf", lambda *_: 0.5)


@pytest.mark.usefixtures("faster")
def test_figures_are_ratios_to_exclusive_and_the_bound_beside_the_papers() -> None:
    report = bench_trace_salus.run(quick=True)
    assert report.name == "trace_salus"
    figures = {}
    for prefix in ("", "spread_", "fitted_"):
        for number, policy in enumerate(("exclusive", "fifo", "srtf", "rr", "fair", "pack")):
            figures[f"{prefix}worst_wait_{policy}_hours"] = float(number)
            figures[f"{prefix}bound_over_{policy}"] = pytest.approx((1 + number) / 10.0)
            if policy != "exclusive":
                for figure in ("", "p95_"):
                    figures[f"{prefix}{figure}exclusive_over_{policy}"] = pytest.approx(
                        1.0 + number
                    )
    papers = {f"{prefix}paper_exclusive_over_srtf": 3.19 for prefix in ("", "fitted_")}
    assert report.figures == figures | papers | {
        "learned_over_bound": 0.5,
        "short_bound_over_srtf": pytest.approx(0.1),
        "short_bound_over_fifo": pytest.approx(0.1),
        "lanes_makespan_over_fifo": pytest.approx(0.5),
        "fitted_lanes_makespan_over_fifo": pytest.approx(0.5),
        "fifo_over_lanes": pytest.approx(2),
        "fitted_fifo_over_lanes": pytest.approx(2),
    }


def test_jobs_that_did_not_end_are_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_trace: str, policies: list[str], _machine: dict[str, str]) -> list[dict[str, object]]:
        times = dict.fromkeys(runs.COMPARED, 10.0)
        return [
            {"policy": each, "completion_seconds": times, "wait_seconds": times,
             "bound_seconds": 1.0, "num_jobs": 7, "num_finished": 6}
            for each in policies
        ]  # fmt: skip

    monkeypatch.setattr(runs, "run", run)
    with pytest.raises(RuntimeError, match="not all jobs have ended under exclusive"):
        bench_trace_salus.run(quick=True)


def test_gangs_are_compared_with_exclusive_in_each_virtual_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traces: list[str] = []

    def run(trace: str, policies: list[str], machine: dict[str, str]) -> list[dict[str, object]]:
        traces.append(trace)
        assert machine["devices"] == "128"
        return [
            {"policy": each, "bound_seconds": 1.0, "num_jobs": 7,
             "completion_seconds": dict.fromkeys(runs.COMPARED, 10.0 / (1 + number)),
             "num_finished": 7,
             "wait_seconds": {"worst": 3600.0}, "slowdown": {"p99": 5.0 + number}}
            for number, each in enumerate(policies)
        ]  # fmt: skip

    monkeypatch.setattr(runs, "run", run)
    report = bench_philly_gangs.run(quick=True)
    assert len(set(traces)) == 8
    # The last column of a trace is how many devices a job has.
    rows = [line for line in traces[0].splitlines() if not line.startswith(("#", "name"))]
    assert max(int(line.rpartition(",")[2]) for line in rows) > 8
    clusters = ("ee9e8c", "11cb48", "b436b2", "6c71a0")
    for cluster in (f"{name}_{load}" for name in clusters for load in (100, 150)):
        assert report.figures[f"{cluster}_exclusive_over_srtf"] == pytest.approx(2.0)
        assert report.figures[f"{cluster}_bound_over_srtf"] == pytest.approx(0.2)
        assert report.figures[f"{cluster}_worst_wait_srtf_hours"] == pytest.approx(1.0)
        assert report.figures[f"{cluster}_p99_slowdown_exclusive"] == pytest.approx(5.0)
