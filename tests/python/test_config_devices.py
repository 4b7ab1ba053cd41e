"""The capacity and reserve of each kind of device in a file."""

from __future__ import annotations

import pytest

from gpushare._settings import config_files
from gpushare._settings.config import daemon_args, load
from gpushare.errors import ConfigError

GPU = "cuda:GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


@pytest.fixture(autouse=True)
def no_system_file(monkeypatch, tmp_path):
    monkeypatch.setattr(config_files, "SYSTEM_FILE", str(tmp_path / "system.toml"))


def test_each_kind_of_device_has_its_capacity_in_a_file(tmp_path):
    path = tmp_path / "both.toml"
    path.write_text('[device.cpu]\ncapacity = "2GiB"\n[device.cuda]\ncapacity = "80GiB"\n')
    config = load({"GPUSHARE_CONFIG": str(path)})
    assert (config.capacity_bytes, config.cuda_capacity_bytes) == (2 << 30, 80 << 30)
    assert daemon_args(config) == ["--capacity", str(2 << 30)]
    assert daemon_args(config, GPU) == ["--device", GPU, "--capacity", str(80 << 30)]


def test_a_reserve_of_the_cpu_in_a_file_goes_with_the_capacity_there(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('[device.cpu]\ncapacity = "64MiB"\nreserve = "32MiB"\n')
    env = {"GPUSHARE_CONFIG": str(path)}
    told = ["--reserve", str(32 << 20), "--capacity", str(64 << 20)]
    assert daemon_args(load(env)) == told
    assert daemon_args(load(env), "cpu:1") == ["--device", "cpu:1", *told]
    assert daemon_args(load(env), GPU) == ["--device", GPU]
    # Another capacity says anew what is kept from jobs.
    assert daemon_args(load(env | {"GPUSHARE_CAPACITY": "1GiB"})) == ["--capacity", str(1 << 30)]
    # Without a capacity on its command line the coordinator reads the file's reserve by itself.
    path.write_text('[device.cpu]\nreserve = "32MiB"\n')
    assert daemon_args(load(env)) == []
    path.write_text('[device.cpu]\nreserve = "much"\n')
    with pytest.raises(ConfigError, match="device.cpu.reserve: bad value 'much'; allowed: a size"):
        load(env)
