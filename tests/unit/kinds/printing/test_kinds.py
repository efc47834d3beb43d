"""The tables of configuration, services, roles and other kinds, compared with kubectl's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.batch_v1 import JobCondition
from kcm.api.rbac_v1 import GROUP
from kcm.apimachinery.ownership import new_controller_ref
from kcm.kinds.printing.columns import columns_of
from kcm.testing import builders
from tests.samples import BODIES, sample, with_spec

NOW = builders.START + timedelta(minutes=5)
ROLES, BINDINGS = f"roles.{GROUP}", f"rolebindings.{GROUP}"
SLICES = "endpointslices.discovery.k8s.io"
SUSPENDED = JobCondition(type="Suspended", status="True")
HPAS = "horizontalpodautoscalers.autoscaling"
BUDGETS = "poddisruptionbudgets.policy"


def row(obj: Any, *, wide: bool = False) -> str:
    """Returns title and text of every column except the name and the age."""
    obj = obj.with_metadata(creation_timestamp=builders.START)
    columns = columns_of(obj.resource, wide=wide)
    assert columns[0].title == "Name"
    return "; ".join(
        f"{column.title.upper()} {column.text(obj, NOW)}"
        for column in columns
        if column.title.upper() not in ("NAME", "AGE")
    )


def build_load_balancer(**ingress: str) -> Any:
    service = with_spec("services", type="LoadBalancer", clusterIP="10.0.0.1")
    status = {"loadBalancer": {"ingress": [ingress] if ingress else []}}
    return service.with_status(sample("services", status=status).status)


def autoscaler(*metrics: Any, current: Sequence[Any] = (), **spec: Any) -> Any:
    hpa = with_spec(HPAS, metrics=[AUTOSCALER_METRICS[name] for name in metrics], **spec)
    return hpa.with_status(sample(HPAS, status={"currentMetrics": list(current)}).status)


AUTOSCALER_METRICS: dict[str, Any] = {
    "cpu": BODIES[HPAS]["spec"]["metrics"][0],
    "memory": {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    },
    "length": {
        "type": "External",
        "external": {
            "metric": {"name": "length"},
            "target": {"type": "AverageValue", "averageValue": "30"},
        },
    },
    "hits": {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "web"},
            "metric": {"name": "hits"},
            "target": {"type": "Value", "value": "2k"},
        },
    },
}
USED = {"averageUtilization": 10, "averageValue": "100m"}
AUTOSCALERS = [
    (
        autoscaler("cpu"),
        "REFERENCE Deployment/web; TARGETS cpu: <unknown>/50%; MINPODS 1; MAXPODS 5; REPLICAS 0",
    ),
    (
        autoscaler(
            "cpu",
            "length",
            current=[
                {"type": "Resource", "resource": {"name": "cpu", "current": USED}},
                {
                    "type": "External",
                    "external": {"metric": {"name": "length"}, "current": {"averageValue": "7"}},
                },
            ],
            minReplicas=2,
        ),
        "REFERENCE Deployment/web; TARGETS cpu: 10%/50%, 7/30 (avg); MINPODS 2; MAXPODS 5; "
        "REPLICAS 0",
    ),
    (
        autoscaler("memory", "hits", "cpu", "length"),
        "REFERENCE Deployment/web; TARGETS memory: <unknown>/1Gi, <unknown>/2k + 2 more...; "
        "MINPODS 1; MAXPODS 5; REPLICAS 0",
    ),
]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        *AUTOSCALERS,
        (
            sample("jobs.batch"),
            "STATUS Running; COMPLETIONS 0/1; DURATION ",
        ),
        (
            builders.job(
                suspend=True, completions=None, parallelism=3, status={"conditions": [SUSPENDED]}
            ),
            "STATUS Suspended; COMPLETIONS 0/1 of 3; DURATION ",
        ),
        (
            builders.job(completions=5, status={"succeeded": 2, "start_time": builders.START}),
            "STATUS Running; COMPLETIONS 2/5; DURATION 5m",
        ),
        (
            sample(
                "resourcequotas",
                status={
                    "hard": {"pods": "5", "limits.cpu": "2", "cpu": "1"},
                    "used": {"pods": "1", "limits.cpu": "500m"},
                },
            ),
            "REQUEST cpu: 0/1, pods: 1/5; LIMIT limits.cpu: 500m/2",
        ),
        (sample("limitranges"), "CREATED AT 2024-01-01T00:00:00Z"),
        (
            builders.cron_job(schedule="@daily", time_zone="Asia/Tokyo"),
            "SCHEDULE @daily; TIMEZONE Asia/Tokyo; SUSPEND False; ACTIVE 0; LAST SCHEDULE <none>",
        ),
        (
            builders.cron_job(suspend=True, status={"last_schedule_time": builders.START}),
            "SCHEDULE */5 * * * *; TIMEZONE <none>; SUSPEND True; ACTIVE 0; LAST SCHEDULE 5m",
        ),
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
            build_load_balancer(),
            "TYPE LoadBalancer; CLUSTER-IP 10.0.0.1; EXTERNAL-IP <pending>; PORT(S) 80/TCP",
        ),
        (
            build_load_balancer(hostname="lb.example.com"),
            "TYPE LoadBalancer; CLUSTER-IP 10.0.0.1; EXTERNAL-IP lb.example.com; PORT(S) 80/TCP",
        ),
        (sample("serviceaccounts"), "SECRETS 0"),
        (
            sample("persistentvolumeclaims"),
            "STATUS Pending; VOLUME ; CAPACITY ; ACCESS MODES ; STORAGECLASS ; "
            "VOLUMEATTRIBUTESCLASS <unset>",
        ),
        (
            with_spec("persistentvolumeclaims", volumeName="v").with_status(
                sample(
                    "persistentvolumeclaims",
                    status={
                        "phase": "Bound",
                        "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                        "capacity": {"storage": "2Gi"},
                    },
                ).status
            ),
            "STATUS Bound; VOLUME v; CAPACITY 2Gi; ACCESS MODES RWO,RWX; STORAGECLASS ; "
            "VOLUMEATTRIBUTESCLASS <unset>",
        ),
        (
            sample("volumeattachments.storage.k8s.io"),
            "ATTACHER disks.example.com; PV disk; NODE node-1; ATTACHED false",
        ),
        (
            sample("csidrivers.storage.k8s.io"),
            "ATTACHREQUIRED false; PODINFOONMOUNT false; STORAGECAPACITY false; "
            "TOKENREQUESTS <unset>; REQUIRESREPUBLISH false; MODES Persistent",
        ),
        (sample("csinodes.storage.k8s.io"), "DRIVERS 1"),
        (
            sample("csistoragecapacities.storage.k8s.io"),
            "STORAGECLASSNAME fast; CAPACITY 10Gi",
        ),
        (sample("volumeattributesclasses.storage.k8s.io"), "DRIVERNAME disks.example.com"),
        (sample("replicationcontrollers"), "DESIRED 1; CURRENT 0; READY 0"),
        (sample("statefulsets.apps"), "READY 0/1"),
        (
            sample("daemonsets.apps"),
            "DESIRED 0; CURRENT 0; READY 0; UP-TO-DATE 0; AVAILABLE 0; NODE SELECTOR <none>",
        ),
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
        owner_references=[new_controller_ref(revision)]
    )
    assert row(owned) == "CONTROLLER deployment.apps/web; REVISION 1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("servicecidrs.networking.k8s.io", "CIDRS 10.1.0.0/24,fd00::/112"),
        ("ipaddresses.networking.k8s.io", "PARENTREF services/default/web"),
        ("runtimeclasses.node.k8s.io", "HANDLER sandbox"),
        ("clustertrustbundles.certificates.k8s.io", "SIGNERNAME <none>"),
        (
            "flowschemas.flowcontrol.apiserver.k8s.io",
            "PRIORITYLEVEL workload-low; MATCHINGPRECEDENCE 1000; DISTINGUISHERMETHOD ByUser; "
            "MISSINGPL ?",
        ),
        (
            "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
            "TYPE Limited; NOMINALCONCURRENCYSHARES 100; QUEUES 128; HANDSIZE 8; "
            "QUEUELENGTHLIMIT 50",
        ),
    ],
)
def test_kinds_of_the_cluster_have_upstreams_columns(name: str, text: str) -> None:
    assert row(sample(name)) == text
