"""Starts the extension API server of the tests, and makes the objects that lead to it."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kcm.apiserver.aggregation.aggregation import AggregationOptions
from kcm.apiserver.aggregation.authentication_trust import TrustedAuthorities
from kcm.testing.waiting import until
from tests.integration.apiserver.authority import Authority
from tests.integration.apiserver.serving import Live

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
GROUP, VERSION = "fruits.example.com", "v1alpha1"
BASE = f"/apis/{GROUP}/{VERSION}"
PROGRAM = "tests.integration.apiserver.extension_server"
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class FrontProxy:
    """The authorities of the front proxy and of extension servers, and the proxy's certificate."""

    folder: Path
    proxies: Authority
    servers: Authority

    @classmethod
    def make(cls, folder: Path) -> FrontProxy:
        return cls(folder, Authority(folder, "front-proxy-ca"), Authority(folder, "servers"))

    def options(self) -> AggregationOptions:
        certificate, key = self.proxies.client("front-proxy-client")
        return AggregationOptions(
            Path(certificate).read_bytes() + Path(key).read_bytes(),
            TrustedAuthorities(front_proxy=self.proxies.path),
        )

    @property
    def bundle(self) -> str:
        """The authority of extension servers, as an APIService has it."""
        return base64.b64encode(self.servers.path.read_bytes()).decode()


@contextmanager
def running(proxy: FrontProxy, name: str, *flags: str) -> Iterator[int]:
    """Runs an extension server with the certificate of the Service `name`, and yields its port."""
    certificate, key = proxy.servers.server(f"{name}.default.svc")
    command = [sys.executable, "-S", "-m", PROGRAM, f"--certificate={certificate}", f"--key={key}"]
    command += [f"--client-ca={proxy.proxies.path}", *flags]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def make_service(api: Live, name: str, host: str = "localhost") -> None:
    """Makes a Service that leads to a host: without a node, no pod of the tests has an address."""
    spec = {"type": "ExternalName", "externalName": host}
    api.create("/api/v1/namespaces/default/services", {"metadata": {"name": name}, "spec": spec})


def api_service(
    name: str, port: int, bundle: str = "", group: str = GROUP, version: str = VERSION
) -> dict[str, Any]:
    """Returns an APIService that leads to a Service; without a bundle, it trusts any server."""
    trust: dict[str, Any] = {"caBundle": bundle} if bundle else {"insecureSkipTLSVerify": True}
    service = {"namespace": "default", "name": name, "port": port}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "service": service,
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            **trust,
        },
    }


def condition(api: Live, name: str) -> dict[str, str]:
    """Returns the condition of an APIService, empty without one."""
    conditions = api.get(f"{SERVICES}/{name}").get("status", {}).get("conditions") or [{}]
    return dict(conditions[0])


def wait_for_reason(api: Live, name: str, reason: str) -> dict[str, str]:
    """Waits until the condition of an APIService has a reason, and returns the condition."""
    until(lambda: condition(api, name).get("reason") == reason, f"{name} to be {reason}")
    return condition(api, name)


def delete(api: Live, name: str) -> None:
    """Deletes an APIService, and waits until its API is gone from the documents."""
    assert api.request("DELETE", f"{SERVICES}/{name}").status_code == 200
    version, _, group = name.partition(".")
    until(lambda: api.app._aggregation.find(f"/apis/{group}/{version}") is None, f"{name} to go")
