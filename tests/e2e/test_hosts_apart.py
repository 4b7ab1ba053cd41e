"""Programs on two hosts that are apart: each in a network namespace, as is their arbiter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from benchmarks.processes import read_status
from tests.e2e.asking import wait_until
from tests.support.arbiters import ArbiterProcess
from tests.support.net_hosts import ARBITER_ADDRESS, NetHosts, why_not
from tests.support.ranks import Ranks, digest_of, ranks_of

Coordinator = Callable[..., dict[str, str]]

SETTINGS = {"capacity": "1GiB", "require": "1", "log_level": "error", "linger": "60s"}
STOCK = {"GPUSHARE_DISABLE": "1"}
FIRST_PORT = 29500


@pytest.fixture(scope="module")
def net() -> Iterator[NetHosts]:
    """Two hosts for the tests of this file."""
    if reason := why_not():
        pytest.skip(reason)
    with NetHosts() as hosts:
        yield hosts


@pytest.fixture
def arbiter(net: NetHosts, tmp_path: Path) -> Iterator[ArbiterProcess]:
    """An arbiter in a place of its own, where neither host is."""
    wrapper = net.beside_arbiter()
    with ArbiterProcess(tmp_path, listen=ARBITER_ADDRESS, wrapper=wrapper) as process:
        yield process


def _training(
    net: NetHosts, hosts: list[dict[str, str]], port: int, steps: int
) -> AbstractContextManager[Ranks]:
    """A program with a rank on each host."""
    environments = [
        env
        | net.program_environment(host)
        | {"MASTER_PORT": str(port), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        for host, env in enumerate(hosts)
    ]
    flags = ["--mode", "ddp", "--steps", str(steps)]
    return ranks_of(environments, *flags, module="tests.e2e.ranks_job")


def _warnings(host: dict[str, str]) -> str:
    return " ".join(each["text"] for each in read_status(host).get("warnings", []))


# The link to the arbiter is cut while both programs run, until the host has said so.
def test_two_programs_end_though_a_host_loses_the_arbiter_for_a_while(
    coordinator: Coordinator, net: NetHosts, arbiter: ArbiterProcess
) -> None:
    hosts = [coordinator(**SETTINGS, **arbiter.settings()) for _ in range(2)]
    with (
        _training(net, hosts, FIRST_PORT + 1, 150) as first,
        _training(net, hosts, FIRST_PORT + 2, 150) as second,
    ):
        wait_until(lambda: arbiter.log().count("its row is over") >= 2)
        net.set_reaches_arbiter(1, reaches=False)
        # Silence takes seconds to notice, in which the same program runs on stock torch.
        with _training(net, [STOCK, STOCK], FIRST_PORT, 150) as ranks:
            stock = digest_of(ranks)
        wait_until(lambda: "it says nothing" in _warnings(hosts[1]))
        wait_until(lambda: "it does not answer; its connection is closed" in arbiter.log())
        assert "the arbiter" not in _warnings(hosts[0])
        net.set_reaches_arbiter(1, reaches=True)
        assert [digest_of(first), digest_of(second)] == [stock, stock]
