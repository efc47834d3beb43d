"""The table is TestSync of remote_available_controller_test.go in
staging/src/k8s.io/kube-aggregator/pkg/controllers/status/remote, Kubernetes 1.33. What servers
answer is in tests/integration/apiserver/test_aggregation_faults.py.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kcm.api.core_v1 import Endpoints, Service
from kcm.api.core_v1.services import (
    EndpointAddress,
    EndpointPort,
    EndpointSubset,
    ServicePort,
    ServiceSpec,
)
from kcm.apiserver.aggregation.availability import PASSED, Outcome, check_service
from kcm.apiserver.aggregation.index import RemoteApi, ServiceKey
from kcm.apiserver.documents.priorities import Priority

PORT = 1234
API = RemoteApi("group", "remote", ServiceKey("foo", "bar", PORT), Priority(1, 1))


def service(port: int = PORT, name: str = "testPort", type_: str = "ClusterIP") -> Service:
    ports = [ServicePort(port=port, name=name)]
    return Service(spec=ServiceSpec(type=type_, ports=ports))


def endpoints(*addresses: str, name: str = "testPort") -> Endpoints:
    subset = EndpointSubset(
        addresses=[EndpointAddress(ip=ip) for ip in addresses],
        ports=[EndpointPort(name=name, port=PORT)],
    )
    return Endpoints(subsets=[subset])


NO_ADDRESSES = 'endpoints for service/bar in "foo" have no addresses with port name "testPort"'


@pytest.mark.parametrize(
    ("there", "behind", "reason", "message"),
    [
        (None, None, "ServiceNotFound", 'service/bar in "foo" is not present'),
        (service(6443, ""), endpoints("1.2.3.4"), "ServicePortError",
         f'service/bar in "foo" is not listening on port {PORT}'),
        (service(), None, "EndpointsNotFound", 'cannot find endpoints for service/bar in "foo"'),
        (service(), Endpoints(), "MissingEndpoints", NO_ADDRESSES),
        (service(), endpoints(), "MissingEndpoints", NO_ADDRESSES),
        (service(), endpoints("1.2.3.4", name="wrongName"), "MissingEndpoints", NO_ADDRESSES),
        (service(), endpoints("1.2.3.4"), "", ""),
        (service(1, type_="ExternalName"), None, "", ""),
    ],
)  # fmt: skip
def test_a_service_has_to_lead_somewhere(
    there: Service | None, behind: Endpoints | None, reason: str, message: str
) -> None:
    wanted = Outcome("False", reason, message) if reason else None
    assert check_service(API, there, behind) == wanted


def test_a_message_has_a_largest_length() -> None:
    now = datetime(2025, 1, 1, 1, 1, 1, 5, tzinfo=UTC)
    condition = Outcome("False", "FailedDiscoveryCheck", "x" * 10_000).condition(now)
    assert len(condition.message or "") == 2000
    assert condition.last_transition_time == now.replace(microsecond=0)
    assert (PASSED.condition(now).message, PASSED.passed) == ("all checks passed", True)
