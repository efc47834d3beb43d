from __future__ import annotations

from kcm.apiserver.bootstrap.kubernetes_service import list_names


def test_pods_reach_the_server_by_the_names_and_the_addresses_of_its_service() -> None:
    assert list_names("10.96.0.0/12, fd00:10::/108") == (
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "10.96.0.1",
        "fd00:10::1",
    )
