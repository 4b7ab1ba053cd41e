"""All metrics. docs/metrics.md describes each, and a test holds it to this table."""

from __future__ import annotations

from gpushare.cli._exporter.metric import Metric, Row, Scope, plain, split

STATES = ("starting", "idle", "waiting", "running", "closing", "paused", "suspended", "lost")
"""Of a job, as the coordinator names them."""


def _uuid(row: Row) -> Row:
    """A CUDA device's UUID, for a join with the metrics of NVIDIA's exporter."""
    kind, _, uuid = row["device"].partition(":")
    return {uuid: 1} if kind == "cuda" else {}


def _device_memory(row: Row) -> Row:
    jobs = row["jobs"]
    return {
        "resident": sum(job.get("resident_bytes", 0) for job in jobs),
        "shared": sum(lane.get("pool_bytes", 0) for lane in row["lanes"]),
        "spilled": sum(job.get("spilled_bytes", 0) for job in jobs),
        "free": max(row["free_bytes"], 0),  # below 0 after the capacity was lowered
        "withheld": row.get("withheld_bytes"),
    }


def _host_used(row: Row) -> Row:
    in_file = row.get("host_file_used_bytes", 0)
    return {"ram": row["host_used_bytes"] - in_file, "file": in_file}


def _host_budget(row: Row) -> Row:
    in_file = row.get("host_file_budget_bytes", 0)
    return {"ram": row["host_budget_bytes"] - in_file, "file": in_file}


def _jobs_by_state(row: Row) -> Row:
    numbers = dict.fromkeys(STATES, 0)
    for job in row["jobs"]:
        if job["state"] in numbers:  # a later version may know more of them
            numbers[job["state"]] += 1
    return dict(numbers)


UP = Metric(
    "gpushare_up",
    Scope.DEVICE,
    "1 if the device's coordinator answers, else 0.",
    (),
    lambda row: {"": row["is_up"]},
)

METRICS = (
    Metric(
        "gpushare_coordinator_info",
        Scope.DEVICE,
        "Always 1; the label is the coordinator's version.",
        ("coordinator.version",),
        lambda row: {row["coordinator"]["version"]: 1},
        "version",
    ),
    Metric(
        "gpushare_coordinator_uptime_seconds",
        Scope.DEVICE,
        "Time since the coordinator started.",
        ("coordinator.uptime_seconds",),
        lambda row: {"": row["coordinator"].get("uptime_seconds")},
    ),
    Metric(
        "gpushare_warnings",
        Scope.DEVICE,
        "Warnings that hold now; gpushare status says them.",
        ("warnings",),
        lambda row: {"": len(row["warnings"])},
    ),
    Metric(
        "gpushare_unmanaged_processes",
        Scope.DEVICE,
        "Processes that use the device without gpushare.",
        ("unmanaged",),
        lambda row: {"": len(row["unmanaged"])},
    ),
    Metric(
        "gpushare_unmanaged_memory_bytes",
        Scope.DEVICE,
        "Device memory of processes that use the device without gpushare.",
        ("unmanaged.resident_bytes",),
        lambda row: {"": sum(each["resident_bytes"] for each in row["unmanaged"])},
    ),
    Metric(
        "gpushare_device_policy_info",
        Scope.DEVICE,
        "Always 1; the label is the policy by which leases are given.",
        ("policy",),
        lambda row: {row["policy"]: 1},
        "policy",
    ),
    Metric(
        "gpushare_device_uuid_info",
        Scope.DEVICE,
        "Always 1; the label is the UUID of a CUDA device, as NVIDIA's exporter has it.",
        ("device",),
        _uuid,
        "UUID",
    ),
    plain(
        "gpushare_device_memory_capacity_bytes",
        Scope.DEVICE,
        "capacity_bytes",
        "Device memory that jobs share.",
    ),
    Metric(
        "gpushare_device_memory_bytes",
        Scope.DEVICE,
        "Device memory by what it is used for; spilled bytes are on the host.",
        (
            "jobs.resident_bytes",
            "lanes.pool_bytes",
            "jobs.spilled_bytes",
            "free_bytes",
            "withheld_bytes",
        ),
        _device_memory,
        "state",
    ),
    Metric(
        "gpushare_host_memory_bytes",
        Scope.DEVICE,
        "Host memory in use for what was spilled.",
        ("host_used_bytes", "host_file_used_bytes"),
        _host_used,
        "place",
    ),
    Metric(
        "gpushare_host_memory_budget_bytes",
        Scope.DEVICE,
        "Host memory that may be used for what was spilled.",
        ("host_budget_bytes", "host_file_budget_bytes"),
        _host_budget,
        "place",
    ),
    plain(
        "gpushare_device_busy_ratio",
        Scope.DEVICE,
        "busy",
        "Part of the last minutes in which a lease was open.",
    ),
    plain(
        "gpushare_switches_total",
        Scope.DEVICE,
        "switches",
        "Leases that followed another job's lease in the same lane.",
    ),
    plain(
        "gpushare_last_handover_seconds",
        Scope.DEVICE,
        "last_handover_seconds",
        "How long a lane was free at the last switch.",
    ),
    split(
        "gpushare_device_released_bytes_total",
        Scope.DEVICE,
        "how",
        {"spilled": "spilled_total_bytes", "dropped": "dropped_total_bytes"},
        "Device memory that jobs gave up when the coordinator asked, by how.",
    ),
    Metric(
        "gpushare_jobs",
        Scope.DEVICE,
        "Jobs by state.",
        ("jobs.state",),
        _jobs_by_state,
        "state",
    ),
    plain(
        "gpushare_jobs_without_series",
        Scope.DEVICE,
        "jobs_without_series",
        "Jobs that have no series of their own, since there are too many.",
    ),
    plain(
        "gpushare_user_memory_bytes",
        Scope.USER,
        "memory_bytes",
        "Device memory that the user's jobs may have in place now.",
    ),
    plain(
        "gpushare_user_memory_limit_bytes",
        Scope.USER,
        "memory_limit_bytes",
        "Limit of all jobs of the user together; 0 for none.",
    ),
    plain(
        "gpushare_user_share_limit_ratio",
        Scope.USER,
        "share_limit",
        "Limit of the device's time for the user; 0 for none.",
    ),
    Metric(
        "gpushare_job_holds_lease",
        Scope.JOB,
        "1 if the job has a lease, else 0.",
        ("state", "lanes.holder"),
        lambda row: {"": row["is_holder"]},
    ),
    plain(
        "gpushare_job_lease_seconds_total",
        Scope.JOB,
        "served_seconds",
        "Time that the job held leases.",
    ),
    plain(
        "gpushare_job_wait_seconds_total",
        Scope.JOB,
        "waited_seconds",
        "Time that the job waited for leases.",
    ),
    plain(
        "gpushare_job_waiting_seconds",
        Scope.JOB,
        "waiting_seconds",
        "How long the wait under way has lasted; 0 if there is none.",
    ),
    plain(
        "gpushare_job_leases_total",
        Scope.JOB,
        "leases",
        "Leases that the job was granted.",
    ),
    plain(
        "gpushare_job_iterations_total",
        Scope.JOB,
        "iterations",
        "Iterations that the job has done.",
    ),
    plain(
        "gpushare_job_iteration_seconds_total",
        Scope.JOB,
        "busy_seconds",
        "Time that the job was inside iterations.",
    ),
    plain(
        "gpushare_job_share_ratio",
        Scope.JOB,
        "share",
        "Part of its lane's last minutes in which the job held the lease.",
    ),
    plain(
        "gpushare_job_share_limit_ratio",
        Scope.JOB,
        "share_limit",
        "Limit of the device's time for the job; 0 for none.",
    ),
    split(
        "gpushare_job_memory_bytes",
        Scope.JOB,
        "state",
        {"resident": "resident_bytes", "shared": "lane_bytes", "spilled": "spilled_bytes"},
        "Memory of the job by where it is; shared memory is in the others' figures, too.",
    ),
    plain(
        "gpushare_job_memory_limit_bytes",
        Scope.JOB,
        "memory_limit_bytes",
        "Limit of the job's device memory; 0 for none.",
    ),
    split(
        "gpushare_job_moved_bytes_total",
        Scope.JOB,
        "how",
        {
            "spilled": "spilled_total_bytes",
            "restored": "restored_total_bytes",
            "dropped": "dropped_total_bytes",
        },
        "Bytes of the job that were spilled, restored or dropped.",
    ),
)

FROM_PAGE = frozenset(
    {
        "gpushare_job_iterations_total",
        "gpushare_job_iteration_seconds_total",
        "gpushare_job_moved_bytes_total",
    }
)
"""Counters of a job that the coordinator reads from the job's page. Without a connection it cannot,
and says 0 or something old."""

STATES_WITHOUT_PAGE = frozenset({"starting", "lost"})
"""Of a job that has no connection, or none yet."""
