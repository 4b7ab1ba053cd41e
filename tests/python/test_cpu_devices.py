"""The devices that a CPU's memory may be divided into: how they are named and where they are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from gpushare._settings.config import Config, daemon_args
from gpushare._settings.config_notes import config_notes
from gpushare._settings.devices import is_device_name, label, parse_wish, socket_name
from gpushare._torch import cuda


def test_a_device_of_the_cpu_has_a_number_below_64():
    for name in ("cpu", "cpu:0", "cpu:9", "cpu:10", "cpu:63"):
        assert is_device_name(name)
        assert parse_wish(name) == name
        assert socket_name(name) == "sock"
    for name in ("cpu:", "cpu:01", "cpu:64", "cpu:100", "cpu:-1", "cpu:1 ", "any:1"):
        assert not is_device_name(name)
        with pytest.raises(ValueError, match=name):
            parse_wish(name)
    assert label("cpu:1") == "CPU 1"


def test_any_is_a_wish_and_no_device():
    assert parse_wish("any") == "any"
    assert not is_device_name("any")


def test_a_device_of_the_cpu_has_none_of_cudas_options():
    config = Config(cuda_reserve_bytes=1 << 20, capacity_bytes=1 << 30)
    assert daemon_args(config) == ["--capacity", str(1 << 30)]
    assert daemon_args(config, "cpu:1") == ["--device", "cpu:1", "--capacity", str(1 << 30)]


@pytest.mark.parametrize("wish", ["cpu", "cpu:1", "any"])
def test_no_cuda_where_the_wish_is_a_cpus(wish: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    assert not cuda.is_wanted(Config(device=wish))


@pytest.mark.parametrize("count", [1, 2])
def test_any_cuda_device_is_the_first_that_is_shown(count: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch, "cuda", SimpleNamespace(device_count=lambda: count))
    assert cuda.is_wanted(Config(device="any"))
    assert cuda.index(Config(device="any")) == 0


def test_the_variable_of_the_devices_is_known(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[coordinator]\ndevices = "cpu:0=1GiB"\n')
    env = {"GPUSHARE_CONFIG": str(config), "GPUSHARE_DEVICES": "cpu:0=1GiB"}
    assert config_notes(env) == []
