"""An API whose server runs as a pod, behind a Service."""

from __future__ import annotations

import json
import ssl
import sys
from typing import Any

import httpx
import pytest

from kcm.testing.waiting import until
from tests.integration.apiserver.authority import Authority
from tests.integration.apiserver.extension import BASE, PROGRAM, ROOT, FrontProxy, api_service
from tests.scenarios.system import System, system

__all__ = ["system"]

pytestmark = pytest.mark.scenario
NAME, PORT = "v1alpha1.fruits.example.com", 8443


def manifest_of_server(system: System, servers: Authority) -> str:
    certificate, key = servers.server("fruits.default.svc")
    front_proxy = system.folder / "s" / "front-proxy-ca.crt"
    command = [sys.executable, "-S", "-m", PROGRAM, "--alone", "--host=$(IP)", f"--port={PORT}"]
    command += [f"--certificate={certificate}", f"--key={key}", f"--client-ca={front_proxy}"]
    container = {
        "name": "main",
        "image": "none",
        "command": command,
        "workingDir": str(ROOT),
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "fruits", "labels": {"app": "fruits"}},
        "spec": {
            "nodeSelector": {"kcm.dev/process": "true"},
            "tolerations": [{"key": "kcm.dev/process", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "fruits"},
        "spec": {"selector": {"app": "fruits"}, "ports": [{"port": 443, "targetPort": PORT}]},
    }
    api = api_service("fruits", 443, FrontProxy(system.folder, servers, servers).bundle)
    return "\n---\n".join(json.dumps(one) for one in (pod, service, api))


def reason(system: System) -> str:
    conditions: list[dict[str, Any]] = system.get("apiservices", NAME)["status"].get(
        "conditions", []
    )
    return str(conditions[0]["reason"]) if conditions else ""


def test_a_pod_serves_an_api(system: System) -> None:
    system.start("--kubelet")
    system.apply(manifest_of_server(system, Authority(system.folder, "servers")))
    until(
        lambda: reason(system) == "Passed",
        "the server",
        within=180,
        words=lambda: reason(system),
    )
    state = system.folder / "s"
    context = ssl.create_default_context(cafile=str(state / "apiserver.crt"))
    token = (state / "apiserver-token").read_text().strip()
    with httpx.Client(
        base_url=f"https://127.0.0.1:{system.api}",
        headers={"authorization": f"Bearer {token}"},
        verify=context,
        timeout=30,
    ) as client:
        until(lambda: client.get(f"{BASE}/whoami").status_code == 200, "the proxy")
        seen = client.get(f"{BASE}/whoami").json()
        assert seen["peer"] == "front-proxy-client"
        assert ["x-remote-user", "kubernetes-admin"] in seen["headers"]
        trust = system.get("configmaps", "extension-apiserver-authentication", "kube-system")
        authority = (state / "front-proxy-ca.crt").read_text().strip()
        assert trust["data"]["requestheader-client-ca-file"].strip() == authority
        assert system.kcm("delete", "pod", "fruits").returncode == 0
        until(lambda: reason(system) == "MissingEndpoints", "the end", words=lambda: reason(system))
        until(lambda: client.get(BASE).status_code == 503, "the refusal")
