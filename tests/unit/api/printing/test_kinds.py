"""The tables of the kinds whose controllers come later, beside what kubectl prints."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api import scheme
from kcm.api.printing.columns import columns_of
from kcm.api.rbac_v1 import GROUP
from tests import builders
from tests.samples import sample, with_spec

NOW = builders.START + timedelta(minutes=5)
ROLES, BINDINGS = f"roles.{GROUP}", f"rolebindings.{GROUP}"
SLICES = "endpointslices.discovery.k8s.io"
BUDGETS = "poddisruptionbudgets.policy"


def row(obj: Any, *, wide: bool = False) -> str:
    """Title and text of every column but the name and the age."""
    obj = obj.with_metadata(creation_timestamp=builders.START)
    columns = columns_of(scheme.resource_of(obj), wide=wide)
    assert columns[0].title == "NAME"
    return "; ".join(
        f"{column.title} {column.text(obj, NOW)}"
        for column in columns
        if column.title not in ("NAME", "AGE")
    )


def balanced(**ingress: str) -> Any:
    service = with_spec("services", type="LoadBalancer", clusterIP="10.0.0.1")
    status = {"loadBalancer": {"ingress": [ingress] if ingress else []}}
    return service.with_status(sample("services", status=status).status)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (sample("configmaps"), "DATA 2"),
        (sample("secrets"), "TYPE Opaque; DATA 1"),
        (
            sample("services"),
            "TYPE ClusterIP; CLUSTER-IP <none>; EXTERNAL-IP <none>; PORT(S) 80/TCP",
        ),
        (
            with_spec("services", type="NodePort", ports=[{"port": 80, "nodePort": 30080}]),
            "TYPE NodePort; CLUSTER-IP <none>; EXTERNAL-IP <none>; PORT(S) 80:30080/TCP",
        ),
        (
            with_spec("services", type="ExternalName", externalName="a.b", ports=None),
            "TYPE ExternalName; CLUSTER-IP <none>; EXTERNAL-IP a.b; PORT(S) <none>",
        ),
        (
            balanced(),
            "TYPE LoadBalancer; CLUSTER-IP 10.0.0.1; EXTERNAL-IP <pending>; PORT(S) 80/TCP",
        ),
        (
            balanced(hostname="lb.example.com"),
            "TYPE LoadBalancer; CLUSTER-IP 10.0.0.1; EXTERNAL-IP lb.example.com; PORT(S) 80/TCP",
        ),
        (sample("serviceaccounts"), "SECRETS 0"),
        (sample("endpoints"), "ENDPOINTS 10.0.0.1:80"),
        (sample("endpoints", subsets=[{"addresses": [{"ip": "fd00::1"}]}]), "ENDPOINTS fd00::1"),
        (sample("endpoints", subsets=None), "ENDPOINTS <none>"),
        (sample(SLICES), "ADDRESSTYPE IPv4; PORTS 80; ENDPOINTS 10.0.0.1"),
        (
            sample(SLICES, ports=[{"port": port} for port in range(1, 6)], endpoints=[]),
            "ADDRESSTYPE IPv4; PORTS 1,2,3 + 2 more...; ENDPOINTS <unset>",
        ),
        (
            builders.deployment(status={"replicas": 3, "ready_replicas": 2}),
            "READY 2/3; UP-TO-DATE 0; AVAILABLE 0",
        ),
        (sample("controllerrevisions.apps"), "CONTROLLER <none>; REVISION 1"),
        (sample(BUDGETS), "MIN AVAILABLE 50%; MAX UNAVAILABLE N/A; ALLOWED DISRUPTIONS 0"),
        (
            sample("priorityclasses.scheduling.k8s.io"),
            "VALUE 1000; GLOBAL-DEFAULT false; PREEMPTIONPOLICY PreemptLowerPriority",
        ),
        (sample(ROLES), "CREATED AT 2024-01-01T00:00:00Z"),
        (sample(BINDINGS), "ROLE Role/reader"),
    ],
)
def test_each_kind_shows_what_kubectl_shows(obj: Any, expected: str) -> None:
    assert row(obj) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (sample("services"), "SELECTOR app=web"),
        (builders.deployment(), "CONTAINERS c; IMAGES nginx:1.25; SELECTOR app=web"),
        (sample(BINDINGS), "USERS ada; GROUPS ; SERVICEACCOUNTS robot"),
    ],
)
def test_wide_views_show_more(obj: Any, expected: str) -> None:
    assert row(obj, wide=True).endswith(expected)


def test_a_revision_shows_whose_it_is() -> None:
    revision = builders.deployment()  # any controller will do
    owned = sample("controllerrevisions.apps").with_metadata(
        owner_references=[builders.new_controller_ref(revision)]
    )
    assert row(owned) == "CONTROLLER deployment.apps/web; REVISION 1"
