"""Which options `gpushare k8s` takes, and what it says of others."""

from __future__ import annotations

import pytest

from gpushare.cli.k8s import names
from tests.support.command_errors import refusal_of

LONG = "a" * 64


@pytest.mark.parametrize(
    ("command", "option", "values"),
    [
        (
            "device-plugin",
            "--resource",
            ["", "slot", "/slot", "a b/slot", "gpushare.io/", "gpushare.io/a/b", "Gpushare.io/slot",
             "kubernetes.io/slot", "x.kubernetes.io/slot", "requests.io/slot", "a.io/\x1b",
             f"a.io/{LONG}", f"{LONG * 4}/slot", "a..b/slot", "a.io/slot\n"],
        ),
        ("device-plugin", "--slots-per-device", ["0", "-1", "1025", "99999999999", "x"]),
        ("device-plugin", "--folder", ["", "run/gpushare"]),
        ("device-plugin", "--kubelet-folder", ["", "plugins"]),
        ("coordinators", "--devices", ["cuda:0", "gpu", "cpu;cpu", "cpu,\x1b"]),
        ("coordinators", "--folder", [""]),
        ("print-manifest", "--image", ["", "a b", "a\n", "-a", "é", 'a"']),
        ("print-manifest", "--namespace", ["", "A", "a_b", "a.b", "-a", "a\n", LONG]),
        ("print-manifest", "--policy", ["nice"]),
        ("print-manifest", "--capacity", ["1", "x"]),
        ("print-manifest", "--devices", ["x,y"]),
        ("print-manifest", "--slots-per-device", ["0"]),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_in_one_line(
    command: str,
    option: str,
    values: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for value in values:
        words = ["k8s", command, f"{option}={value}"]
        assert option in refusal_of(words, monkeypatch, capfd), value


def test_names_that_kubernetes_takes_are_taken() -> None:
    for name in ("gpushare.io/slot", "a/B_.-c", f"{LONG}.io/{LONG[:63]}"):
        names.check_resource(name)
    for name in ("a", "0-1", LONG[:63]):
        names.check_namespace(name)
    for name in ("gpushare:latest", "[::1]:5000/Team/image:v1.0_x", f"r.io/a@sha256:{LONG}"):
        names.check_image(name)
