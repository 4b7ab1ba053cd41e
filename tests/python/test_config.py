from __future__ import annotations

import errno
import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare._settings import config as config_module
from gpushare._settings import config_files
from gpushare._settings.config import (
    Config,
    daemon_args,
    load,
    load_readable,
    socket_paths,
)
from gpushare._settings.settings import SETTINGS
from gpushare.errors import ConfigError


@pytest.fixture(autouse=True)
def no_system_file(monkeypatch, tmp_path):
    monkeypatch.setattr(config_files, "SYSTEM_FILE", str(tmp_path / "system.toml"))
    monkeypatch.setattr(config_module, "SYSTEM_FOLDER", str(tmp_path / "system"))


def test_without_settings_everything_is_the_default():
    assert load({}) == Config()


UUID = "GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
GPU = f"cuda:{UUID}"

GOOD = [
    ("SOCKET", "/run/x/sock", "socket", "/run/x/sock"),
    ("SOCKET", "none", "socket", "none"),
    ("POLICY", "rr", "policy", "rr"),
    ("MAX_WAIT", "500ms", "max_wait_seconds", 0.5),
    ("SWITCH_LOSS", "0.05", "switch_loss", 0.05),
    ("MEMORY_WAIT", "0", "memory_wait_seconds", 0.0),
    ("MIN_QUANTUM", "20ms", "min_quantum_seconds", 0.02),
    ("LINGER", "never", "linger_seconds", math.inf),
    ("LINGER", "1s", "linger_seconds", 1.0),
    ("CAPACITY", "2GiB", "capacity_bytes", 2 << 30),
    ("HOST_BUDGET", "4MiB", "host_budget_bytes", 4 << 20),
    ("HOST_RAM_BUDGET", "4MiB", "host_ram_budget_bytes", 4 << 20),
    ("HOST_RAM_BUDGET", "0", "host_ram_budget_bytes", 0),
    ("SPILL_DIR", "/tmp", "spill_dir", "/tmp"),
    ("SPILL_DIR", "", "spill_dir", ""),
    ("LOG", "debug", "log_level", "debug"),
    ("NAME", "my job", "name", "my job"),
    ("GROUP", "sweep", "group", "sweep"),
    ("PRIORITY", "interactive", "priority", "interactive"),
    ("WEIGHT", "2.5", "weight", 2.5),
    ("MEMORY_LIMIT", "1 GiB", "memory_limit_bytes", 1 << 30),
    ("DEADLINE", "50ms", "deadline_seconds", 0.05),
    ("SHARE_LIMIT", "0.5", "share_limit", 0.5),
    ("ELASTIC_LIMITS", "1", "elastic_limits", True),
    ("PROFILE", "mine", "profile", "mine"),
    ("DEVICE", "cpu", "device", "cpu"),
    ("DEVICE", "auto", "device", "auto"),
    ("DEVICE", "cuda", "device", "cuda"),
    ("DEVICE", "cuda:1", "device", "cuda:1"),
    ("DEVICE", GPU, "device", GPU),
    ("CAPACITY", "2GiB", "cuda_capacity_bytes", 2 << 30),
    ("RESERVE", "0", "cuda_reserve_bytes", 0),
    ("RESERVE", "1.5GiB", "cuda_reserve_bytes", 3 << 29),
    ("IDLE_SPILL", "2 min", "idle_spill_seconds", 120.0),
    ("IDLE_SPILL", "never", "idle_spill_seconds", math.inf),
    ("DISABLE", "1", "disable", True),
    ("ARBITER", "none", "arbiter", "none"),
    ("ARBITER", "tcp:node-1.cluster:7070", "arbiter", "tcp:node-1.cluster:7070"),
    ("ARBITER", "tcp:[::1]:65535", "arbiter", "tcp:[::1]:65535"),
    ("ARBITER", "tcp:[fe80::1%eth0]:7070", "arbiter", "tcp:[fe80::1%eth0]:7070"),
    ("ARBITER", "unix:/run/arbiter", "arbiter", "unix:/run/arbiter"),
    ("ARBITER_TOKEN_FILE", "/etc/token", "arbiter_token_file", "/etc/token"),
    ("LANES", "off", "lanes", "off"),
    ("TRANSFER_BUDGET", "0", "transfer_budget_bytes_per_second", 0),
    ("TRANSFER_BUDGET", "1MiB", "transfer_budget_bytes_per_second", 1 << 20),
    ("NUM_LANES", "2", "num_lanes", 2),
    ("LANE_SCRUB", "1", "lane_scrub", True),
    ("LANE_STRICT", "1", "lane_strict", True),
    ("PASSTHROUGH", "on", "passthrough", "on"),
    ("REACHABLE", "off", "reachable", "off"),
    ("SAFEPOINTS", "0", "safepoints", False),
    ("ELASTIC_THREADS", "1", "elastic_threads", True),
    ("SM_SHARE", "0.25", "sm_share", 0.25),
    ("REQUIRE", "0", "require", False),
    ("REPORT", "0", "report", False),
]


@pytest.mark.parametrize(("name", "text", "field", "value"), GOOD)
def test_reads_the_environment(name, text, field, value):
    assert getattr(load({f"GPUSHARE_{name}": text}), field) == value


BAD = [
    ("TRANSFER_BUDGET", "500B"),
    ("TRANSFER_BUDGET", "-1"),
    ("ARBITER", "10.0.0.1:7070"),
    ("ARBITER", "tcp:host"),
    ("ARBITER", "tcp:host:65536"),
    ("ARBITER", "tcp:::1:80"),
    ("ARBITER", "unix:relative"),
    ("ARBITER_TOKEN_FILE", "relative"),
    ("IDLE_SPILL", "0"),
    ("SOCKET", "relative/sock"),
    ("SOCKET", "/ends/in/"),
    ("SOCKET", "/" + "x" * 100),
    ("POLICY", "lottery"),
    ("MAX_WAIT", "0"),
    ("NUM_LANES", "0"),
    ("NUM_LANES", "17"),
    ("NUM_LANES", "1.5"),
    ("SWITCH_LOSS", "0"),
    ("SWITCH_LOSS", "0.6"),
    ("MEMORY_WAIT", "-1"),
    ("MIN_QUANTUM", "soon"),
    ("CAPACITY", "1B"),
    ("CAPACITY", "much"),
    ("HOST_BUDGET", "1KiB"),
    ("SPILL_DIR", "here"),
    ("LOG", "loud"),
    ("NAME", "x" * 129),
    ("NAME", "a\nb"),
    ("NAME", "3"),
    ("PRIORITY", "high"),
    ("WEIGHT", "0"),
    ("WEIGHT", "nan"),
    ("DEVICE", "tpu"),
    ("DEVICE", "cuda:"),
    ("DEVICE", "cuda:-1"),
    ("DEVICE", GPU.upper()),
    ("DEVICE", GPU + "\n"),
    ("DEVICE", GPU.removesuffix("9")),
    ("DISABLE", "yes"),
    ("REPORT", "false"),
]


@pytest.mark.parametrize(("name", "text"), BAD)
def test_refuses_a_bad_value_naming_variable_value_and_what_is_allowed(name, text):
    with pytest.raises(ConfigError) as caught:
        load({f"GPUSHARE_{name}": text})
    said = str(caught.value)
    assert said.startswith(f"GPUSHARE_{name}: bad value {text!r}; allowed: ")
    assert isinstance(caught.value, ValueError)


def test_a_deadline_has_a_unit():
    with pytest.raises(ConfigError) as caught:
        load({"GPUSHARE_DEADLINE": "50"})
    assert str(caught.value) == "GPUSHARE_DEADLINE: bad value '50'; say 50ms or 50s"
    assert load({"GPUSHARE_DEADLINE": "0"}).deadline_seconds == 0


def test_what_is_wrong_counts_as_not_set(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[job]\nrequire = true\nweight = -1\n")
    env = {"GPUSHARE_CONFIG": str(file), "GPUSHARE_POLICY": "lottery", "GPUSHARE_NAME": "mine"}
    settings, error = load_readable(env)
    assert settings == Config(require=True, name="mine")
    assert str(error) == f"{file}: job.weight: bad value -1; allowed: a finite number above 0"
    assert load_readable({"GPUSHARE_NAME": "mine"}) == (Config(name="mine"), None)


def test_an_error_has_no_other_behind_it(tmp_path):
    (tmp_path / "bad.toml").write_text("[job")
    for env in (
        {"GPUSHARE_POLICY": "lottery"},
        {"GPUSHARE_CONFIG": str(tmp_path / "bad.toml")},
        {"GPUSHARE_CONFIG": str(tmp_path)},
    ):
        with pytest.raises(ConfigError) as caught:
            load(env)
        shown = caught.value
        assert shown.__cause__ is None
        assert shown.__context__ is None or shown.__suppress_context__


def test_an_empty_variable_counts_as_unset():
    names = {setting.variable: "" for setting in SETTINGS if not setting.may_be_empty}
    assert load(names) == Config()


def test_the_users_file_wins_over_the_systems_and_the_environment_over_both(tmp_path):
    (tmp_path / "system.toml").write_text(
        '[coordinator]\npolicy = "rr"\nmax_wait = 3\n[device.cpu]\ncapacity = "1GiB"\n'
    )
    (tmp_path / "gpushare").mkdir()
    (tmp_path / "gpushare" / "config.toml").write_text(
        '[coordinator]\npolicy = "fifo"\n[job]\nweight = 2\nreport = false\n[other]\nkey = 1\n'
    )
    env = {"XDG_CONFIG_HOME": str(tmp_path), "GPUSHARE_CAPACITY": "4GiB"}
    assert load(env) == Config(
        policy="fifo",
        max_wait_seconds=3.0,
        capacity_bytes=4 << 30,
        cuda_capacity_bytes=4 << 30,
        weight=2.0,
        report=False,
    )


def test_without_xdg_the_users_file_is_below_home(tmp_path):
    folder = tmp_path / ".config" / "gpushare"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[coordinator]\npolicy = "rr"\n')
    assert load({"HOME": str(tmp_path)}).policy == "rr"


def test_a_named_file_is_the_only_one_and_must_exist(tmp_path):
    (tmp_path / "system.toml").write_text('[coordinator]\npolicy = "rr"\n')
    named = tmp_path / "named.toml"
    named.write_text('[host]\nspill_dir = ""\n')
    config = load({"GPUSHARE_CONFIG": str(named)})
    assert (config.policy, config.spill_dir) == ("", "")
    with pytest.raises(ConfigError, match=r"GPUSHARE_CONFIG: cannot read .*absent"):
        load({"GPUSHARE_CONFIG": str(tmp_path / "absent")})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[coordinator]\npolicy = 7\n",
            "coordinator.policy: bad value 7; allowed: "
            "fair, rr, fifo, srtf, priority, deadline, pack, srtf+pack, deadline+pack",
        ),
        ("[device.cpu]\ncapacity = true\n", "device.cpu.capacity: bad value True"),
        ("[device.cpu]\ncapacity = 1.5\n", "device.cpu.capacity: bad value 1.5"),
        ("[coordinator]\nmax_wait = false\n", "coordinator.max_wait: bad value False"),
        ("[job]\nweight = true\n", "job.weight: bad value True"),
        ("not toml", "bad.toml: "),
        ("\udcb1", "bad.toml: it is no text in UTF-8, so it is no file of settings"),
        ("a = " + 2000 * "[" + 2000 * "]", "it is nested too deeply"),
        ("[job]\nweight = 1" + 400 * "0", "job.weight: bad value 1000"),
        pytest.param(
            "[job]\ngroup = '" + 5000 * "x" + "'",
            "xxx... (5002 characters); allowed: ",
            id="a long value",
        ),
        pytest.param(
            "# " + (1 << 20) * "x",
            "has more than 1 MiB, so it is no file of settings",
            id="a long file",
        ),
        ('[job]\ndeadline = "50"', "job.deadline: bad value '50'; say 50ms or 50s"),
        ('[coordinator]\nlinger = "1.5"', "coordinator.linger: bad value '1.5'; say 1.5ms or 1.5s"),
    ],
)
def test_refuses_a_bad_file_naming_it(tmp_path, text, said):
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError) as caught:
        load({"GPUSHARE_CONFIG": str(path)})
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_file_without_end_is_refused_before_it_is_read(tmp_path, kind):
    """Each command and each job waited for the writer of such a pipe."""
    path = tmp_path / "pipe" if kind == "pipe" else Path("/dev/zero")
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(ConfigError) as caught:
        load({"GPUSHARE_CONFIG": str(path)})
    assert str(caught.value) == (
        f"{path} is a pipe or a device, and no file of settings: name a plain file, or /dev/null "
        "for no settings"
    )
    assert load({"GPUSHARE_CONFIG": os.devnull}) == Config()


def test_a_table_where_a_value_is_expected_is_not_followed(tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text("coordinator = 3\n")
    assert load({"GPUSHARE_CONFIG": str(path)}) == Config()


def test_a_configured_socket_is_the_only_one():
    assert socket_paths(Config(socket="/x/sock")) == ["/x/sock"]
    assert socket_paths(Config(socket="none")) == []


def test_sockets_are_the_systems_then_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    own = f"{tmp_path}/gpushare/sock"
    assert socket_paths(Config()) == [own]
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "sock").touch()
    assert socket_paths(Config()) == [str(tmp_path / "system" / "sock"), own]


def test_a_cuda_devices_sockets_are_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    own = f"{tmp_path}/gpushare/{UUID}.sock"
    assert socket_paths(Config(), GPU) == [own]
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "sock").touch()
    assert socket_paths(Config(), GPU) == [own]
    (tmp_path / "system" / f"{UUID}.sock").touch()
    assert socket_paths(Config(), GPU) == [str(tmp_path / "system" / f"{UUID}.sock"), own]
    assert socket_paths(Config(socket="/x/sock"), GPU) == ["/x/sock"]


def test_a_systems_folder_that_is_closed_counts_as_there(monkeypatch, tmp_path):
    systems = str(tmp_path / "system" / "sock")
    before = os.stat

    def stat(path, *more, **named):
        if path == systems:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return before(path, *more, **named)

    monkeypatch.setattr(os, "stat", stat)
    assert socket_paths(Config())[0] == systems


def test_a_cuda_devices_memory_is_told_and_what_is_kept_of_it():
    config = Config(capacity_bytes=1 << 30, policy="rr")
    told = ["--device", GPU, "--policy", "rr"]
    assert sorted(daemon_args(config, GPU)) == sorted(told)
    wanted = [*told, "--device-memory", str(80 << 30)]
    assert sorted(daemon_args(config, GPU, 80 << 30)) == sorted(wanted)
    config = Config(cuda_reserve_bytes=0)
    assert daemon_args(config, GPU) == ["--device", GPU, "--reserve", "0"]
    assert daemon_args(config) == []


@pytest.mark.parametrize("folder", ["", "relative", "/nowhere/at/all", "/dev/null"])
def test_without_a_runtime_folder_the_socket_is_below_tmp(monkeypatch, folder):
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    assert socket_paths(Config()) == [f"/tmp/gpushare-{os.geteuid()}/sock"]


def test_daemon_options_are_those_that_are_set():
    assert daemon_args(Config()) == []
    config = Config(
        capacity_bytes=1 << 30,
        policy="rr",
        min_quantum_seconds=0.02,
        max_wait_seconds=1.5,
        switch_loss=0.05,
        memory_wait_seconds=0.0,
        linger_seconds=math.inf,
        spill_dir="",
        host_budget_bytes=1 << 21,
        log_level="debug",
        name="not the daemon's",
    )
    arguments = daemon_args(config)
    assert dict(zip(arguments[::2], arguments[1::2], strict=True)) == {
        "--capacity": "1073741824",
        "--policy": "rr",
        "--min-quantum-ms": "20",
        "--max-wait-ms": "1500",
        "--switch-loss": "0.05",
        "--memory-wait-s": "0",
        "--linger-s": "never",
        "--spill-dir": "",
        "--host-budget": "2097152",
        "--log-level": "debug",
    }


@given(st.dictionaries(st.sampled_from([s.variable for s in SETTINGS]), st.text(max_size=8)))
def test_any_environment_is_read_or_refused_by_name(env):
    try:
        load(env)
    except ConfigError as error:
        assert any(str(error).startswith(f"{name}: bad value") for name in env)
