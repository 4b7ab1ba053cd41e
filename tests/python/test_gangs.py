from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch.distributed as dist
from torch.distributed import rpc

from gpushare import _native
from gpushare._coordinator import gangs
from gpushare._settings.devices import CPU
from gpushare.errors import GpushareError

ALONE = {"gang": "", "rank": 0, "ranks": 1, "arbiter": ""}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch):
    """What two ranks have in common; the test says which of them it is."""
    store = dist.HashStore()
    monkeypatch.setattr(dist.distributed_c10d, "_get_default_store", lambda: store)
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    monkeypatch.setattr(dist, "get_rank", lambda: 1)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    return store


def test_a_process_of_its_own_is_in_no_gang():
    assert not gangs.is_distributed()
    assert gangs.options("", CPU) == ALONE
    assert gangs.options("blue", CPU) == ALONE | {"gang": "blue"}


def test_ranks_find_the_same_name(store, monkeypatch):
    first = gangs.options("", CPU)
    assert (first["rank"], first["ranks"]) == (1, 2)
    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    assert gangs.options("", CPU) == first | {"rank": 0}
    assert first["gang"].startswith("ranks-")
    # Of another program, with a store of its own, it is another one.
    monkeypatch.setattr(dist.distributed_c10d, "_get_default_store", dist.HashStore)
    assert gangs.options("", CPU)["gang"] != first["gang"]


# People read the name where jobs wait for the gang, and are to know whose gang it is.
def test_a_gang_is_called_after_the_job_where_the_job_has_a_name(store, monkeypatch):
    for given, begin in (("train.7", "train.7"), ("\u00e9" * 64, "\u00e9" * 50)):
        settings = replace(gangs._native.settings(), name=given)
        monkeypatch.setattr(gangs._native, "settings", lambda settings=settings: settings)
        store.delete_key("gpushare/gang")
        name, _, number = gangs.options("", CPU)["gang"].rpartition("-")
        assert (name, len(number)) == (begin, 8)


@pytest.fixture
def rpc_workers(monkeypatch):
    """Makes this process one of so many workers of torch's RPC."""

    def become(count):
        agent = SimpleNamespace(get_worker_infos=lambda: [None] * count)
        monkeypatch.setattr(rpc.api, "_is_current_rpc_agent_set", lambda: True)
        monkeypatch.setattr(rpc.api, "_get_current_rpc_agent", lambda: agent)

    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "2950")
    return become


def test_workers_of_rpc_are_a_gang(rpc_workers, monkeypatch):
    rpc_workers(1)
    assert gangs.options("", CPU) == ALONE
    rpc_workers(2)
    first = gangs.options("", CPU)
    assert first == ALONE | {"gang": "rpc-127.0.0.1-2950"}
    assert gangs.options("blue", CPU)["gang"] == "blue"
    monkeypatch.setenv("MASTER_PORT", "2951")
    assert gangs.options("", CPU) != first


def test_workers_of_rpc_that_met_elsewhere_get_no_turns(rpc_workers, monkeypatch):
    rpc_workers(3)
    monkeypatch.delenv("MASTER_PORT")
    with pytest.raises(
        GpushareError, match="one of 3 workers of torch.distributed.rpc, which have"
    ):
        gangs.options("", CPU)


def test_a_name_that_is_given_wins(store):
    gangs.options("", CPU)
    assert gangs.options("blue", CPU) == {
        "gang": "blue",
        "rank": 1,
        "ranks": 2,
        "arbiter": "",
    }


def test_one_rank_is_no_gang(store, monkeypatch):
    monkeypatch.setattr(dist, "get_world_size", lambda: 1)
    assert gangs.options("", CPU) == ALONE


def test_ranks_that_are_elsewhere_get_no_turns(store, monkeypatch):
    assert gangs.options("", CPU)["ranks"] == 2
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    with pytest.raises(GpushareError, match="rank 1 of 2 of a program on several devices or hosts"):
        gangs.options("", CPU)


def test_ranks_on_several_devices_of_one_coordinator_find_the_same_name(store, monkeypatch):
    first = gangs.options("", "cpu:0")
    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    assert gangs.options("", "cpu:1") == first | {"rank": 0}


def test_ranks_of_several_coordinators_get_no_turns(store, monkeypatch):
    gangs.options("", "cpu:0")
    monkeypatch.setattr(_native, "sockets", lambda: ["/run/another"])
    with pytest.raises(GpushareError, match="GPUSHARE_SOCKET can name one coordinator"):
        gangs.options("", "cpu:1")


def test_ranks_without_a_store_get_no_turns(store, monkeypatch):
    monkeypatch.setattr(dist.distributed_c10d, "_get_default_store", lambda: None)
    with pytest.raises(GpushareError, match="cannot ask the others whether they have its coord"):
        gangs.options("", CPU)
    assert gangs.options("blue", CPU)["gang"] == "blue"


def test_ranks_on_several_hosts_get_no_turns(store, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    with pytest.raises(GpushareError, match="rank 1 of 2 of a program on several devices or hosts"):
        gangs.options("", CPU)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert gangs.options("", CPU)["ranks"] == 2


@pytest.fixture
def with_arbiter(monkeypatch):
    """Makes this process one whose coordinator has such an arbiter."""

    def become(address):
        settings = gangs._native.settings()
        monkeypatch.setattr(gangs._native, "settings", lambda: replace(settings, arbiter=address))

    return become


# The second rank's host has another name, and a coordinator of its own.
def test_ranks_on_several_hosts_with_one_arbiter_find_the_same_name(
    store, monkeypatch, with_arbiter
):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    with_arbiter("tcp:10.0.0.1:7070")
    first = gangs.options("", CPU)
    assert first["arbiter"] == "tcp:10.0.0.1:7070"
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    assert gangs.options("", CPU) == first | {"rank": 0}


@pytest.mark.parametrize("other", ["", "none", "tcp:10.0.0.2:7070"])
def test_ranks_that_do_not_have_one_arbiter_get_no_turns(store, with_arbiter, other):
    with_arbiter("tcp:10.0.0.1:7070")
    gangs.options("", CPU)
    with_arbiter(other)
    with pytest.raises(GpushareError, match="GPUSHARE_ARBITER names one arbiter"):
        gangs.options("", CPU)
