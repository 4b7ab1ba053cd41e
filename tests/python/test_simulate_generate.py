"""Generated traces: the same for the same seed, and distributed as their sources say."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest

from gpushare.simulate import generate
from gpushare.simulate.clusters import CLUSTERS, PHILLY_SIZES
from gpushare.simulate.models import MODELS
from gpushare.simulate.trace import HEADER, to_csv


def _durations(cluster: str, number: int = 20_000) -> list[float]:
    rng = random.Random(1)
    return sorted(CLUSTERS[cluster].seconds(rng) for _ in range(number))


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_the_same_seed_makes_the_same_trace(cluster: str) -> None:
    made = generate.generate(cluster, jobs=50, seed=3)
    assert made == generate.generate(cluster, jobs=50, seed=3)
    assert made != generate.generate(cluster, jobs=50, seed=4)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_rows_are_jobs_of_the_models_in_order_of_arrival(cluster: str) -> None:
    made = generate.generate(cluster, jobs=200, seed=0)
    assert len({job.name for job in made}) == 200
    assert [job.submit_seconds for job in made] == sorted(job.submit_seconds for job in made)
    sizes = {(model.persistent_mib, model.peak_mib) for model in MODELS}
    assert all((job.persistent_mib, job.peak_mib) in sizes for job in made)


@pytest.mark.parametrize(("load", "devices"), [(0.5, 1), (2.0, 10)])
def test_arrivals_make_the_load(load: float, devices: int) -> None:
    made = generate.generate("salus", jobs=5000, seed=0, load=load, devices=devices)
    span = made[-1].submit_seconds - made[0].submit_seconds
    assert sum(job.seconds for job in made) / (span * devices) == pytest.approx(load, rel=0.02)
    # As random points: the gaps between them have the deviation of their mean.
    gaps = [b.submit_seconds - a.submit_seconds for a, b in itertools.pairwise(made)]
    assert statistics.stdev(gaps) == pytest.approx(statistics.mean(gaps), rel=0.1)


def test_gangs_are_as_frequent_as_in_philly_and_make_the_load_with_all_their_devices() -> None:
    made = generate.generate("philly", jobs=20_000, seed=0, devices=128, load=0.5)
    for size in PHILLY_SIZES:
        part = sum(job.gpus == size.gpus for job in made) / len(made)
        assert part == pytest.approx(size.jobs / 100, rel=0.1)
    work = sum(job.seconds * job.gpus for job in made)
    assert work / (made[-1].submit_seconds * 128) == pytest.approx(0.5, rel=0.02)


def test_a_virtual_cluster_has_sizes_and_times_of_its_own() -> None:
    made = generate.generate("philly-ee9e8c", jobs=20_000, seed=0, devices=128)
    times = {
        gpus: [job.seconds for job in made if job.gpus == gpus] for gpus in (1, 2, 4, 8, 16, 32)
    }
    assert sum(map(len, times.values())) == len(made)
    assert len(times[8]) / len(made) == pytest.approx(0.2725, rel=0.05)
    for gpus, median, mean in ((1, 34_603, 211_649), (8, 27_464, 51_131)):
        assert statistics.median(times[gpus]) == pytest.approx(median, rel=0.08)
        assert statistics.mean(times[gpus]) == pytest.approx(mean, rel=0.15)


def test_no_job_has_more_devices_than_there_are() -> None:
    made = generate.generate("philly-11cb48", jobs=2000, seed=0, devices=4)
    assert {job.gpus for job in made} == {1, 2, 4}
    alone = generate.generate("philly", jobs=500, seed=0, devices=100, most_gpus=1)
    assert {job.gpus for job in alone} == {1}


def test_salus_jobs_take_one_five_or_ten_minutes() -> None:
    durations = _durations("salus")
    assert set(durations) == {60.0, 300.0, 600.0}
    assert statistics.mean(durations) == pytest.approx(320, rel=0.03)


def test_philly_has_its_median_and_a_heavy_tail() -> None:
    durations = _durations("philly")
    assert statistics.median(durations) == pytest.approx(780, rel=0.08)
    # The longest 5 % are most of the time.
    assert sum(durations[-1000:]) > 0.5 * sum(durations)
    assert durations[0] >= 10
    assert durations[-1] <= 60 * 86_400


def test_alibaba_has_its_median_and_90th_percentile() -> None:
    durations = _durations("alibaba")
    assert statistics.median(durations) == pytest.approx(1380, rel=0.05)
    assert durations[int(0.9 * len(durations))] == pytest.approx(16_200, rel=0.06)


def test_fitted_jobs_are_mostly_short_and_some_long() -> None:
    durations = _durations("fitted")
    assert statistics.median(durations) == pytest.approx(84, rel=0.05)
    # As log-normal: the 90th percentile is 1.2816 sigma above the median.
    assert durations[int(0.9 * len(durations))] == pytest.approx(84 * 6.01, rel=0.06)
    assert durations[-1] == 48 * 60


def test_a_spread_is_that_of_alibaba_around_five_minutes() -> None:
    durations = _durations("spread")
    assert statistics.median(durations) == pytest.approx(300, rel=0.05)
    assert durations[int(0.9 * len(durations))] / 300 == pytest.approx(16_200 / 1380, rel=0.06)


def test_what_a_model_keeps_is_less_than_its_peak() -> None:
    assert len(MODELS) == 33
    assert all(0 < model.persistent_mib < model.peak_mib for model in MODELS)


def test_a_model_uses_all_of_the_device_with_its_most_images_a_second() -> None:
    used = {model.name: model.utilisation for model in MODELS}
    assert used["alexnet_100"] == used["resnet50_75"] == 1
    assert used["alexnet_25"] == pytest.approx(25 * 2726 / (100 * 1332))
    assert all(0.4 < value <= 1 for value in used.values())
    vgg = next(model for model in MODELS if model.name == "vgg16_25")
    assert vgg.persistent_mib == 1056
    assert vgg.peak_mib == 4117
    assert vgg.iteration_seconds == pytest.approx(60 / 311)


@pytest.mark.parametrize(
    ("cluster", "wish"),
    [("nobody", {}), ("salus", {"jobs": 0}), ("salus", {"devices": 0}), ("salus", {"load": 0.0})],
)
def test_what_is_out_of_range_is_refused(cluster: str, wish: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"salus, fitted, spread, short, philly, |above 0"):
        generate.generate(cluster, **{"jobs": 10, **wish})


def test_csv_begins_with_its_comment() -> None:
    made = generate.generate("salus", jobs=2, seed=0)
    lines = to_csv(made, "first\nsecond").splitlines()
    assert lines[:3] == ["# first", "# second", HEADER]
    assert len(lines) == 5
    assert lines[3].count(",") == HEADER.count(",")
