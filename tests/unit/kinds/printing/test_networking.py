"""The tables of Ingresses and what belongs to them.

Cases of TestPrintIngress and TestPrintIngressClass, and of formatHosts and
ingressLoadBalancerStatusStringer (pkg/printers/internalversion/printers.go).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.kinds.printing.test_kinds import row

INGRESSES, CLASSES = "ingresses.networking.k8s.io", "ingressclasses.networking.k8s.io"
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


def ingress(*entries: dict[str, str], hosts: tuple[str, ...] = (), **spec: Any) -> Any:
    rules = [{"host": host} if host else {} for host in hosts]
    obj = with_spec(INGRESSES, **{"defaultBackend": BACKEND, "rules": rules, **spec})
    status = {"loadBalancer": {"ingress": list(entries)}}
    return obj.with_status(sample(INGRESSES, status=status).status)


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (ingress({"ip": "2.3.4.5", "hostname": "localhost.localdomain"}, ingressClassName="foo"),
         "CLASS foo; HOSTS *; ADDRESS 2.3.4.5; PORTS 80"),
        (ingress(hosts=("a", "b", "c")), "CLASS <none>; HOSTS a,b,c; ADDRESS ; PORTS 80"),
        (ingress(hosts=("a", "b", "c", "d", "")),
         "CLASS <none>; HOSTS a,b,c + 2 more...; ADDRESS ; PORTS 80"),
        (ingress(hosts=("a", "b", "c", "")),
         "CLASS <none>; HOSTS a,b,c + 1 more...; ADDRESS ; PORTS 80"),
        (ingress(hosts=("", "a", "b", "c")), "CLASS <none>; HOSTS a,b,c; ADDRESS ; PORTS 80"),
        (ingress(hosts=("a", "", "b", "")), "CLASS <none>; HOSTS a,b; ADDRESS ; PORTS 80"),
        (ingress({"hostname": "b"}, {"ip": "1.1.1.1"}, tls=[{"secretName": "s"}]),
         "CLASS <none>; HOSTS *; ADDRESS 1.1.1.1,b; PORTS 80, 443"),
        # as in every table of a server, which are for wide columns
        (ingress({"hostname": "a" * 60}), f"CLASS <none>; HOSTS *; ADDRESS {'a' * 60}; PORTS 80"),
    ],
)  # fmt: skip
def test_an_ingress_shows_its_hosts_and_addresses(obj: Any, text: str) -> None:
    assert row(obj) == text


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (None, "<none>"),
        ({"kind": "customgroup", "name": "example"}, "customgroup/example"),
        ({"apiGroup": "example.com", "kind": "customgroup", "name": "example"},
         "customgroup.example.com/example"),
    ],
)  # fmt: skip
def test_a_class_shows_its_parameters(parameters: dict[str, str] | None, text: str) -> None:
    obj = with_spec(CLASSES, controller="example.com/controller", parameters=parameters)
    assert row(obj) == f"CONTROLLER example.com/controller; PARAMETERS {text}"
