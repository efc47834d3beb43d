from __future__ import annotations

import pytest

from kcm.api.core_v1 import Service, ServiceSpec
from kcm.store.strategies.services import ServiceStrategy

A, B = "10.0.0.1", "10.0.0.2"
Given = tuple[str, list[str] | None]


# After TestNormalizeClusterIPs in pkg/registry/core/service/storage/storage_test.go.
@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ((A, [A]), (A, [A]), (A, [A])),
        ((A, [A]), (A, None), (A, [A])),
        ((A, [A]), (B, [A]), (B, [B])),
        ((A, [A]), (B, None), (B, [B])),
        ((A, [A]), (B, [A, B]), (B, [A, B])),
        (("None", ["None"]), (A, ["None"]), (A, [A])),
        ((A, [A]), ("", [A]), (A, [A])),  # given back what was allocated
    ],
)
def test_a_client_may_know_the_first_address_only(old: Given, new: Given, wanted: Given) -> None:
    def service(ip: str, ips: list[str] | None) -> Service:
        return Service(spec=ServiceSpec(type="ClusterIP", cluster_ip=ip, cluster_ips=ips))

    spec = ServiceStrategy().for_update(service(*new), service(*old)).spec
    assert (spec.cluster_ip, spec.cluster_ips) == wanted
