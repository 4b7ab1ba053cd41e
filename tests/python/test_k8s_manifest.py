"""The manifests of `gpushare k8s print-manifest`, and the Helm chart that is made of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from gpushare._settings.config import SYSTEM_FOLDER
from gpushare.cli.k8s import manifest
from tests.python.conftest import ROOT, clean_environment

yaml = pytest.importorskip("yaml", reason="SKIPPED: the manifests' structure, which needs PyYAML")

CHART = ROOT / "deploy" / "helm" / "gpushare"


def printed(*words: str) -> str:
    command = [sys.executable, "-m", "gpushare", "k8s", "print-manifest", *words]
    return subprocess.run(
        command, env=clean_environment(), capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """Name -> object, of all that is printed."""
    words = ("--image", "example/image:1", "--slots-per-device", "7", "--policy", "rr")
    objects = yaml.safe_load_all(printed(*words, "--capacity", "8GiB"))
    return {each["metadata"]["name"]: each for each in objects}


def pods(whole: dict[str, Any]) -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"] for each in whole.values() if "spec" in each]


def test_the_values_are_in_their_places(whole: dict[str, Any]) -> None:
    assert set(whole) == {"gpushare", "gpushare-coordinators", "gpushare-device-plugin"}
    coordinators, plugin = (each["containers"][0] for each in pods(whole))
    assert plugin["command"][-2:] == ["--slots-per-device", "7"]
    env = {each["name"]: each["value"] for each in coordinators["env"]}
    assert (env["GPUSHARE_POLICY"], env["GPUSHARE_CAPACITY"]) == ("rr", "8GiB")
    assert plugin["image"] == coordinators["image"] == "example/image:1"


def test_no_container_has_more_rights_than_it_needs(whole: dict[str, Any]) -> None:
    coordinators, plugin = pods(whole)
    assert (coordinators.get("hostPID"), plugin.get("hostPID")) == (True, None)
    containers = [each for pod in pods(whole) for each in pod["containers"]]
    containers += coordinators["initContainers"]
    for each in containers:
        rights = each["securityContext"]
        assert rights["capabilities"]["drop"] == ["ALL"]
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["readOnlyRootFilesystem"] is True
        assert "privileged" not in rights
        assert set(each["resources"]) == {"requests", "limits"}
    assert coordinators["containers"][0]["securityContext"]["runAsNonRoot"] is True
    for pod in pods(whole):
        assert pod["automountServiceAccountToken"] is False
        assert "hostNetwork" not in pod
        assert "hostIPC" not in pod


def test_each_mount_has_its_volume_and_the_plugin_cannot_write_to_sockets(
    whole: dict[str, Any],
) -> None:
    for pod in pods(whole):
        volumes = {each["name"]: each["hostPath"]["path"] for each in pod["volumes"]}
        mounts = pod["containers"][0]["volumeMounts"]
        assert {each["name"]: each["mountPath"] for each in mounts} == volumes
    (run,) = (
        each
        for each in pods(whole)[1]["containers"][0]["volumeMounts"]
        if each["mountPath"] == SYSTEM_FOLDER
    )
    assert run["readOnly"] is True


def test_the_commands_of_the_containers_exist(whole: dict[str, Any]) -> None:
    for pod in pods(whole):
        words = pod["containers"][0]["command"]
        assert words[:2] == ["gpushare", "k8s"]
        shown = subprocess.run(
            [sys.executable, "-m", "gpushare", *words[1:], "--help"],
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert shown.returncode == 0, shown.stderr


def test_the_example_asks_for_a_slot_and_is_no_root() -> None:
    pod = yaml.safe_load(printed("example-pod"))
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"]["gpushare.io/slot"] == 1
    assert container["securityContext"]["runAsNonRoot"] is True


def test_hostile_values_stay_texts() -> None:
    text = 'a"\n      hostNetwork: true #'
    pod = yaml.safe_load(manifest.plain("coordinators", "n", {"image": text}))["spec"]["template"]
    assert pod["spec"]["containers"][0]["image"] == text
    assert "hostNetwork" not in pod["spec"]


def test_the_chart_is_what_the_manifests_say() -> None:
    check = [sys.executable, "tools/make_helm_chart.py", "--check"]
    subprocess.run(check, cwd=ROOT, env=clean_environment(), check=True)


def test_the_chart_with_its_values_is_the_plain_manifest() -> None:
    """As far as this replaces what `helm template` would: these expressions are all there are."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def value(match: re.Match[str]) -> str:
        words = match[1].split(" | ")
        found = "gpushare" if words[0] == ".Release.Namespace" else values[words[0][8:]]
        assert words[1:] in (["toJson"], ["toString", "toJson"])
        return json.dumps(found)

    for part in manifest.IN_CHART:
        text = (CHART / "templates" / f"{part}.yaml").read_text()
        rendered = re.sub(r"\{\{ (.*?) \}\}", value, text)
        assert "{{" not in rendered
        assert yaml.safe_load(rendered) == yaml.safe_load(manifest.plain(part, "gpushare", {}))


def test_the_manifests_fit_the_schemas_of_kubernetes(whole: dict[str, Any]) -> None:
    reason = "SKIPPED: manifests by Kubernetes' schemas, which needs kubernetes-validate"
    validate = pytest.importorskip("kubernetes_validate", reason=reason)
    pod = yaml.safe_load(printed("example-pod"))
    for each in [*whole.values(), pod]:
        validate.validate(each, validate.latest_version(), strict=True)
