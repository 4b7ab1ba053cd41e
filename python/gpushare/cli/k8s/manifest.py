"""The manifests that ``gpushare k8s print-manifest`` prints, and of which the Helm chart is made.

Coordinators and device plugin are two DaemonSets, since they need different rights. The
coordinators have to see the processes of all pods, so they share the node's process numbers. They
run as a user of their own, without any capability. The device plugin needs the kubelet's folder,
which is root's. It shares no process numbers. Neither talks to the cluster's API, so neither has a
service account's token. An update of the plugin also does not end the coordinators.

In the texts ``@key@`` stands for a value: JSON, which YAML contains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from gpushare._accounts.folders import SYSTEM_FOLDER as ACCOUNTS_FOLDER
from gpushare._settings.config import SYSTEM_FOLDER

USER = 64207
"""The user that the coordinators run as. No pod and no user of a node should have this number."""

DEFAULTS: dict[str, Any] = {
    "image": "gpushare:latest",
    "resource": "gpushare.io/slot",
    "slotsPerDevice": "4",
    "devices": "",
    "policy": "",
    "capacity": "",
    "runtimeClassName": "",
    "nodeSelector": {},
    "tolerations": [],
    "resources": {
        "requests": {"cpu": "50m", "memory": "64Mi"},
        "limits": {"cpu": "1", "memory": "512Mi"},
    },
}
"""The chart's values."""

HELP = {
    "image": "An image with gpushare and its extra k8s.",
    "resource": "The name of the resource that pods ask for.",
    "slotsPerDevice": "How many containers may share a device.",
    "devices": "Devices of each node, with commas between; empty: its GPUs, or the CPU.",
    "policy": "By which policy the coordinators choose the next job; empty: fair.",
    "capacity": "The memory of each device that jobs share, such as 40GiB; empty: the default.",
    "runtimeClassName": "The pods' runtime, such as nvidia, if the default one does not show GPUs.",
    "nodeSelector": "On which nodes the pods run, such as {gpu: shared}.",
    "tolerations": "Which taints of nodes the pods accept.",
    "resources": "The CPU and memory that each container requests, and its limits.",
}

_NAMESPACE = """\
# The pods mount folders of the node, which the lower levels of pod security do not allow.
apiVersion: v1
kind: Namespace
metadata:
  name: @namespace@
  labels:
    pod-security.kubernetes.io/enforce: privileged
"""

_HEAD = """\
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {name}
  namespace: @namespace@
  labels:
    app.kubernetes.io/name: {name}
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: {name}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {name}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      runtimeClassName: @runtimeClassName@
      nodeSelector: @nodeSelector@
      tolerations: @tolerations@
"""

_COORDINATORS = f"""\
      # The coordinators tell processes of other pods apart by their numbers on the node.
      hostPID: true
      terminationGracePeriodSeconds: 10
      initContainers:
        # Jobs believe a coordinator of another user only if root has given it the folder.
        - name: give-folders
          image: @image@
          command: ["chown", "{USER}:{USER}", "{SYSTEM_FOLDER}", "{ACCOUNTS_FOLDER}"]
          resources: @resources@
          securityContext:
            runAsUser: 0
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {{drop: [ALL], add: [CHOWN]}}
            seccompProfile: {{type: RuntimeDefault}}
          volumeMounts:
            - {{name: run, mountPath: {SYSTEM_FOLDER}}}
            - {{name: accounts, mountPath: {ACCOUNTS_FOLDER}}}
      containers:
        - name: coordinators
          image: @image@
          command: ["gpushare", "k8s", "coordinators", "--accounts-folder", "{ACCOUNTS_FOLDER}",
                    "--devices", @devices@]
          env:
            - {{name: GPUSHARE_POLICY, value: @policy@}}
            - {{name: GPUSHARE_CAPACITY, value: @capacity@}}
            - {{name: NVIDIA_VISIBLE_DEVICES, value: all}}
            - {{name: NVIDIA_DRIVER_CAPABILITIES, value: utility}}
            - {{name: HOME, value: /nonexistent}}
          resources: @resources@
          securityContext:
            runAsUser: {USER}
            runAsGroup: {USER}
            runAsNonRoot: true
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {{drop: [ALL]}}
            seccompProfile: {{type: RuntimeDefault}}
          volumeMounts:
            - {{name: run, mountPath: {SYSTEM_FOLDER}}}
            - {{name: accounts, mountPath: {ACCOUNTS_FOLDER}}}
      volumes:
        - {{name: run, hostPath: {{path: {SYSTEM_FOLDER}, type: DirectoryOrCreate}}}}
        - {{name: accounts, hostPath: {{path: {ACCOUNTS_FOLDER}, type: DirectoryOrCreate}}}}
"""

_DEVICE_PLUGIN = f"""\
      # A call of a kubelet that hangs takes 5 s to fail.
      terminationGracePeriodSeconds: 10
      containers:
        - name: device-plugin
          image: @image@
          command: ["gpushare", "k8s", "device-plugin", "--resource", @resource@,
                    "--slots-per-device", @slotsPerDevice@]
          env:
            - {{name: NVIDIA_VISIBLE_DEVICES, value: all}}
            - {{name: NVIDIA_DRIVER_CAPABILITIES, value: utility}}
            - {{name: HOME, value: /nonexistent}}
          resources: @resources@
          securityContext:
            # The kubelet's folder is root's.
            runAsUser: 0
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {{drop: [ALL]}}
            seccompProfile: {{type: RuntimeDefault}}
          volumeMounts:
            - {{name: run, mountPath: {SYSTEM_FOLDER}, readOnly: true}}
            - {{name: plugins, mountPath: /var/lib/kubelet/device-plugins}}
      volumes:
        - {{name: run, hostPath: {{path: {SYSTEM_FOLDER}, type: DirectoryOrCreate}}}}
        - {{name: plugins, hostPath: {{path: /var/lib/kubelet/device-plugins, type: Directory}}}}
"""

_EXAMPLE_POD = """\
# A job with one slot. The device plugin adds the coordinator's folder and the settings.
apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  runtimeClassName: @runtimeClassName@
  containers:
    - name: train
      image: @image@
      command: ["gpushare", "run", "--", "python", "train.py"]
      env:
        # The name that gpushare status shows.
        - name: GPUSHARE_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
      resources:
        # Memory that has left the device counts here.
        limits: {@resource@: 1, memory: 16Gi}
      securityContext:
        # Run as a number of your own: root may pause the jobs of others.
        runAsUser: 10001
        runAsNonRoot: true
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL]}
        seccompProfile: {type: RuntimeDefault}
"""

TEXTS = {
    "namespace": _NAMESPACE,
    "coordinators": _HEAD.format(name="gpushare-coordinators") + _COORDINATORS,
    "device-plugin": _HEAD.format(name="gpushare-device-plugin") + _DEVICE_PLUGIN,
    "example-pod": _EXAMPLE_POD,
}
IN_CHART = ("coordinators", "device-plugin")
"""A chart has no namespace of its own: ``helm install --namespace`` says it."""

_KEY = re.compile("@([A-Za-z]+)@")


def plain(part: str, namespace: str, values: Mapping[str, Any]) -> str:
    """Returns a part of the manifest.

    Args:
        part: One of ``TEXTS``.
        namespace: Where it goes.
        values: Instead of those in ``DEFAULTS``.
    """
    known = {**DEFAULTS, **values, "namespace": namespace}
    return _KEY.sub(lambda match: json.dumps(known[match[1]]), TEXTS[part])


def chart_files() -> dict[str, str]:
    """Returns the files of the Helm chart whose texts are made from these: path and text."""
    lines = [f"# {HELP[key]}\n{key}: {json.dumps(value)}\n" for key, value in DEFAULTS.items()]
    files = {f"templates/{part}.yaml": _KEY.sub(_helm, TEXTS[part]) for part in IN_CHART}
    return {"values.yaml": "\n".join(lines), **files}


def _helm(match: re.Match[str]) -> str:
    key = match[1]
    if key == "namespace":
        return "{{ .Release.Namespace | toJson }}"
    # A number that somebody writes without quotes becomes a text, as arguments have to be.
    text = " | toString" if isinstance(DEFAULTS[key], str) else ""
    return f"{{{{ .Values.{key}{text} | toJson }}}}"
