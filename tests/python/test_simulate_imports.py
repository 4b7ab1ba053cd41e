"""Traces in the forms of others become traces of the simulator."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpushare.simulate.imports import history
from gpushare.simulate.imports.ran_job import Imported, import_jobs
from gpushare.simulate.imports.read import read
from gpushare.simulate.trace import to_csv
from tests.python.conftest import clean_environment
from tests.support import forked

HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,uA,vcX,1,4,1,COMPLETED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:37,250,0
2,uB,vcX,8,4,1,FAILED,2020-06-09 18:41:00,2020-06-09 18:41:27,2020-06-09 18:45:37,125,0
3,uB,vcY,0,4,1,COMPLETED,2020-06-09 18:40:00,2020-06-09 18:41:27,2020-06-09 18:45:37,9,0
4,uB,vcY,1,4,1,CANCELLED,2020-06-09 18:41:17,2020-06-09 18:41:27,2020-06-09 18:45:37,1000,0
"""
TIRESIAS = """\
job_id,num_gpu,submit_time,iterations,model_name,duration,interval
0,1,10,600,vgg19,150,30
1,2,30,133,vgg11,147,23
"""
PAI_JOBS = """\
job_id,num_gpu,num_cpu,num_inst,user,submit_time,duration
a,0.5,4,1,u1,100,60
b,1,4,4,u2,110,60
"""
PAI_TASKS = """\
job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type
0123456789abcdef,worker,1.0,Terminated,1000.0,1600.0,600.0,29.3,25.0,T4
fedcba9876543210,worker,2.0,Terminated,1000.0,1600.0,600.0,29.3,75.0,T4
0000000000000000,tensorflow,1.0,Running,1000.0,,600.0,29.3,100.0,T4
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,1000,1000,1,460,,LS,Running,5,105,25
p1,1000,1000,1,1000,,BE,Pending,6,90,
p2,1000,1000,8,1000,,LS,Running,0,100,0
"""
SLURM = """\
JobID|JobName|User|State|Submit|ElapsedRaw|AllocTRES
101|train a|ann|COMPLETED|2026-11-20T10:00:00|3600|billing=4,cpu=4,gres/gpu:a100=1,gres/gpu=1
101.batch|batch||COMPLETED|2026-11-20T10:00:00|3600|cpu=4
102|eval|bob|FAILED|2026-11-20T10:05:00|60|cpu=4,gres/gpu=1
104|edit|bob|COMPLETED|2026-11-20T10:04:00|60|cpu=4
103|big|bob|COMPLETED|2026-11-20T10:05:00|600|cpu=4,gres/gpu:a100=8,gres/gpu=8
"""
PHILLY = [
    {
        "status": "Pass", "vc": "ee", "jobid": "app_1", "user": "u",
        "submitted_time": "2017-10-07 01:11:39",
        "attempts": [
            {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:13:00",
             "detail": [{"ip": "m1", "gpus": ["gpu0"]}, {"ip": "m2", "gpus": ["gpu1"]}]},
            {"start_time": "2017-10-07 01:14:00", "end_time": "2017-10-07 01:14:30",
             "detail": [{"ip": "m2", "gpus": ["gpu3"]}]},
            {"start_time": None, "end_time": "None", "detail": []},
        ],
    },
    {"status": "Killed", "vc": "ee", "jobid": "app_2", "user": "u", "attempts": [],
     "submitted_time": "2017-10-07 01:11:00"},
]  # fmt: skip


def _read(text: str) -> Imported:
    found = read(text)
    assert found is not None
    return found


def _times(found: Imported) -> list[tuple[str, float, float, int, float]]:
    """Name, submission, time alone, devices and part of each of these, of each job."""
    return [
        (job.name, job.submit_seconds, job.seconds, job.gpus, job.utilisation) for job in found.jobs
    ]


@pytest.mark.parametrize(
    ("text", "jobs", "left_out"),
    [
        (
            HELIOS,
            [
                ("vcX.1", 27.0, 250.0, 1, 1.0),
                ("vcX.2", 0.0, 125.0, 8, 1.0),
                ("vcY.4", 17.0, 1000.0, 1, 1.0),
            ],
            ["without a GPU"],
        ),
        (TIRESIAS, [("vgg19.0", 0.0, 150.0, 1, 1.0), ("vgg11.1", 20.0, 147.0, 2, 1.0)], []),
        (PAI_JOBS, [("a", 0.0, 60.0, 1, 0.5), ("b", 10.0, 60.0, 4, 1.0)], []),
        (
            PAI_TASKS,
            [
                ("0123456789ab.worker", 0.0, 600.0, 1, 0.25),
                ("fedcba987654.worker", 0.0, 600.0, 2, 0.75),
            ],
            ["that never ran"],
        ),
        (PODS, [("p0", 5.0, 80.0, 1, 0.46), ("p2", 0.0, 100.0, 8, 1.0)], ["that never ran"]),
        (
            SLURM,
            [
                ("train_a.101", 0.0, 3600.0, 1, 1.0),
                ("eval.102", 300.0, 60.0, 1, 1.0),
                ("big.103", 300.0, 600.0, 8, 1.0),
            ],
            ["without a GPU"],
        ),
        (json.dumps(PHILLY), [("ee.app_1", 0.0, 90.0, 2, 1.0)], ["that never ran"]),
    ],
    ids=["helios", "tiresias", "pai", "pai_tasks", "pods", "slurm", "philly"],
)
def test_each_form_is_recognised(
    text: str, jobs: list[tuple[str, float, float, int, float]], left_out: list[str]
) -> None:
    found = _read(text)
    assert sorted(_times(found)) == [pytest.approx(job) for job in sorted(jobs)]
    for what, said in zip(left_out, found.left_out, strict=True):
        assert what in said


def test_iterations_are_kept_where_a_trace_has_them() -> None:
    job = _read(TIRESIAS).jobs[0]
    assert (job.iterations, job.iteration_seconds) == (600, pytest.approx(0.25))


@pytest.mark.parametrize("text", ["", "name,submit_s,duration\na,0,3s\n", "[1, 2]"])
def test_other_texts_are_left_to_the_simulator(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (HELIOS.replace("250", "soon"), "line 2: column 'duration': 'soon' is not a finite number"),
        (
            SLURM.replace("2026-11-20T10:05:00|60", "Unknown|60"),
            "line 4: column 'Submit': 'Unknown' is not a time such as 2017-10-07 01:12:09",
        ),
        (json.dumps([{"attempts": []}]), "job 1: it has no 'vc'"),
        ('[{"attempts": ', "line 1:"),
        (
            TIRESIAS.replace("0,1,", "0,0,").replace("1,2,", "1,0,"),
            "no job is left; 2 without a GPU",
        ),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        read(text)


def _pai(*lines: str) -> str:
    return "\n".join(["job_id,user,num_gpu,submit_time,duration", *lines]) + "\n"


def _slurm(elapsed: str, gpus: str = "1") -> str:
    head = "JobID|User|Submit|Elapsed|AllocTRES\n"
    return f"{head}1|u|2026-01-01T00:00:00|{elapsed}|gres/gpu={gpus}\n"


def _philly(**fields: Any) -> str:
    return json.dumps([PHILLY[1], PHILLY[0] | fields])


GOOD = "a,u,1,0,5"
LONG = PHILLY[0] | {
    "attempts": [
        {"start_time": "0001-01-01", "end_time": "9999-01-01", "detail": [{"gpus": ["gpu0"]}]}
    ]
}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (_pai("a,u,1,0,inf"), "line 2: column 'duration': 'inf' is not a finite number"),
        (_pai(GOOD, "a,u,1,0,nan"), "line 3: column 'duration': 'nan' is not a finite number"),
        (_pai(GOOD, "", "a,u,1,0,1e308"), r"line 4: it runs 1e\+308 s, allowed are 0 to 1e\+09"),
        (_pai("a,u,inf,0,5"), "line 2: column 'num_gpu': 'inf'"),
        (_pai("a,u,1e300,0,5"), r"line 2: it has 1e\+300 GPUs, allowed are 0.001 to 1e\+06"),
        (_pai("a,u,0.0001,0,5"), "line 2: it has 0.0001 GPUs, allowed are 0.001 to"),
        (_pai(GOOD, "a,u,1,nan,5"), "line 3: column 'submit_time': 'nan'"),
        (_pai("a,u,1,2e9,5", GOOD), r"line 2: it comes 2e\+09 s after the first job \(line 3\)"),
        (_pai(GOOD, f"{'a' * 200_000},u,1,0,5"), "line 3: field larger than field limit"),
        (_slurm("9" * 400 + ":00:00"), r"line 2: column 'Elapsed': '9{40}...' is not a time"),
        (_slurm("1:00:00", "9" * 400), "line 2: it has inf GPUs"),
        (TIRESIAS.replace("600", "9" * 4000), r"line 2: column 'iterations': '9{40}...' is not"),
        (TIRESIAS.replace("600", "0.5"), "line 2: column 'iterations': '0.5' is not a whole"),
        (TIRESIAS.replace("600", "-1"), "line 2: it has -1 iterations, allowed are 0 to"),
        ("\n[" * 50_000 + '"attempts"', "line 102: more than 100 lists or objects are inside"),
        (_philly(user=5), "job 2: 'user': '5' is not a text in quotes"),
        (_philly(user=None), "job 2: 'user': 'null' is not a text"),
        (_philly(submitted_time="soon"), "job 2: 'submitted_time': 'soon' is not a time such"),
        (json.dumps([*PHILLY, LONG]), "job 3: it runs 3.16e"),
    ],
)
def test_numbers_that_cannot_be_simulated_are_refused_where_they_stand(
    text: str, what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        read(text)


def test_jobs_that_are_left_out_have_no_part_in_the_sums() -> None:
    found = _read(_pai(GOOD, "b,u,-1,0,5", "c,u,1,0,-1e308"))
    assert found.left_out == ["1 without a GPU", "1 that never ran"]


def test_a_long_name_is_cut_to_what_a_trace_may_have() -> None:
    (job,) = _read(_pai(f"{'a' * 1000},u,1,0,5")).jobs
    assert job.name == "a" * 128


def _row(**fields: Any) -> dict[str, Any]:
    return {
        "id": "7f3a91000000", "name": "train", "user": "ann", "host": "h", "device": "cpu:0",
        "policy": "fair", "start": "2026-11-20T10:00:00+00:00", "wall_seconds": 100.0,
        "waited_seconds": 30.0, "switching_seconds": 10.0, "busy_seconds": 40.0,
        "iterations": 200, "peak_bytes": (5 << 20) + 1,
    } | fields  # fmt: skip


def test_history_is_replayed_without_its_waits() -> None:
    rows = [
        _row(),
        _row(id="8", start="2026-11-20T11:00:00+01:00", device="cpu:1"),
        _row(iterations=0),
    ]
    found = import_jobs(history.FORM, history.read(rows))
    assert found.left_out == ["1 that never ran"]
    job = found.jobs[0]
    assert (job.name, job.user, job.submit_seconds) == ("train.7f3a91", "ann", 0.0)
    assert job.seconds == pytest.approx(60.0)
    assert job.gap_seconds == pytest.approx(0.1)
    assert (job.persistent_mib, job.peak_mib) == (6, 6)
    assert found.jobs[1].submit_seconds == 0.0
    assert history.num_devices(rows) == 2
    assert "as it was (under fair): completion, average 1 min 40 s" in history.as_it_was(rows)
    assert "0.200000,6,6,1.000,0.100000" in to_csv(found.jobs)


def test_history_that_cannot_be_simulated_is_named() -> None:
    with pytest.raises(ValueError, match=r"job 'train.7f3a91': it has 2e\+18 iterations"):
        import_jobs(history.FORM, history.read([_row(iterations=2 * 10**18)]))


def _simulate(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    words = ["-m", "gpushare", "simulate", *arguments]
    return forked.run(words, clean_environment() | env, text="", timeout=100)


def test_the_command_reads_them_and_says_what_it_left_out(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "jobs.txt", tmp_path / "trace.csv"
    # As some programs write it: with a mark at its begin.
    theirs.write_text(SLURM, encoding="utf-8-sig")
    options = ("--policy", "exclusive,srtf", "--devices", "8")
    ended = _simulate(str(theirs), *options)
    assert ended.returncode == 0, ended.stderr
    assert "3 of 3" in ended.stdout
    said = "Slurm's accounts: 3 jobs, 1 of them on several GPUs (8 at most)"
    assert f"{said}; left out: 1 without a GPU" in ended.stderr
    assert _simulate(str(theirs), "--output", str(ours)).returncode == 0
    assert _simulate(str(ours), *options).stdout == ended.stdout
    fewer = _simulate(str(theirs), "--devices", "2")
    assert fewer.returncode == 2
    assert "job 'big.103' needs 8 devices, and there are 2" in fewer.stderr


def test_history_that_is_not_there_is_said(tmp_path: Path) -> None:
    empty = {"XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    ended = _simulate("--from-history", **empty)
    assert ended.returncode == 2
    assert "the accounts of this machine: no job is left" in ended.stderr


def test_the_command_names_the_line_of_the_users_own_file(tmp_path: Path) -> None:
    trace = tmp_path / "pai.csv"
    trace.write_text(_pai("a,u,0.0001,0,5"))
    ended = _simulate(str(trace))
    assert ended.returncode == 2
    said = "pai.csv: PAI's trace of jobs: line 2: it has 0.0001 GPUs"
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["x.csv", "--from-history"], "--from-history is a trace itself: without TRACE"),
        (["x.csv", "--since", "3d"], "--since is for --from-history"),
        (["x.csv", "--output", "y.csv", "--policy", "rr"], "--output simulates nothing: without"),
    ],
)
def test_options_without_effect_are_refused(arguments: list[str], what: str) -> None:
    ended = _simulate(*arguments)
    assert ended.returncode == 2
    assert what in ended.stderr
