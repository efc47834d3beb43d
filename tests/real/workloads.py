"""Cases of workloads, and of what points at their pods."""

from __future__ import annotations

import base64

from tests.real.client import Json, Space
from tests.real.objects import (
    CM,
    CRON,
    DEPLOY,
    DS,
    ENDPOINTS,
    HPA,
    JOBS,
    PODS,
    PVC,
    RC,
    RS,
    SA,
    SECRETS,
    SLICES,
    STS,
    SVC,
    Steps,
    template,
    workload,
)
from tests.real.runner import Case


def replicaset(space: Space) -> Steps:
    space.create(RS, "web", spec=workload("web", 3))
    yield "three pods", lambda: len(space.pods(app="web")) == 3
    space.delete(PODS, space.pods(app="web")[0]["metadata"]["name"])
    yield "ready again", lambda: space.at(RS, "web", "status", "readyReplicas") == 3
    space.patch(RS, "web", {"spec": {"replicas": 1}})
    yield "one pod", lambda: space.at(RS, "web", "status", "replicas") == 1
    assert len(space.pods(app="web")) == 1


def deployment(space: Space) -> Steps:
    space.create(DEPLOY, "web", spec=workload("web", 3))
    yield "available", lambda: space.at(DEPLOY, "web", "status", "availableReplicas") == 3
    image = {"containers": [{"name": "c", "image": "j"}]}
    space.patch(DEPLOY, "web", {"spec": {"template": {"spec": image}}})
    yield "updated", lambda: _is_rolled_out(space, "web", 3)
    assert len(space.api.list(space.path(RS))) == 2


def _is_rolled_out(space: Space, name: str, replicas: int) -> bool:
    obj = space.get(DEPLOY, name) or {}
    status, generation = obj.get("status", {}), obj["metadata"]["generation"]
    counts = [status.get(f, 0) for f in ("replicas", "updatedReplicas", "availableReplicas")]
    return bool(status.get("observedGeneration") == generation and counts == [replicas] * 3)


def fields_of_later(space: Space) -> Steps:
    """What kcm's own server would drop or refuse stays: there is one ReplicaSet, and it has it."""
    later = {
        "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "1"}},
        "volumes": [{"name": "v", "image": {"reference": "r"}}],
        "hostnameOverride": "other",
    }
    space.create(DEPLOY, "web", spec=workload("web", 2, **later))
    yield "available", lambda: _is_rolled_out(space, "web", 2)
    space.patch(DEPLOY, "web", {"spec": {"replicas": 3}})
    yield "scaled", lambda: _is_rolled_out(space, "web", 3)
    (only,) = space.api.list(space.path(RS))
    spec = only["spec"]["template"]["spec"]
    assert spec["resources"] == later["resources"]
    assert spec["volumes"][0]["image"]["reference"] == "r"
    assert spec["hostnameOverride"] == "other"


def replicationcontroller(space: Space) -> Steps:
    labels = {"app": "rc"}
    space.create(RC, "rc", spec={"replicas": 2, "selector": labels, "template": template(labels)})
    yield "ready", lambda: space.at(RC, "rc", "status", "readyReplicas") == 2


def statefulset(space: Space) -> Steps:
    claims = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    spec = workload("db", 2) | {
        "serviceName": "db",
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claims}],
    }
    space.create(STS, "db", spec=spec)
    yield "ready", lambda: space.at(STS, "db", "status", "readyReplicas") == 2
    assert space.get(PVC, "data-db-1")
    space.patch(STS, "db", {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}})
    yield "updated", lambda: space.at(STS, "db", "status", "updatedReplicas") == 2


def daemonset(space: Space) -> Steps:
    spec = workload("agent", 0, tolerations=[{"operator": "Exists"}])
    del spec["replicas"]
    spec["template"]["spec"]["nodeSelector"] = {"for": "agents"}
    for name in ("a", "b"):
        labels = {"for": "agents"}
        space.api.create("/api/v1/nodes", {"metadata": {"name": f"agent-{name}", "labels": labels}})
    space.create(DS, "agent", spec=spec)
    yield "two pods", lambda: space.at(DS, "agent", "status", "currentNumberScheduled") == 2


def job(space: Space) -> Steps:
    image = {"name": "v", "image": {"reference": "r"}}
    pods = template(restartPolicy="Never", volumes=[image])
    space.create(JOBS, "plain", spec={"completions": 3, "parallelism": 2, "template": pods})
    indexed = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": pods}
    space.create(JOBS, "indexed", spec=indexed)
    yield "plain completes", lambda: space.at(JOBS, "plain", "status", "completionTime")
    yield "indexed completes", lambda: space.at(JOBS, "indexed", "status", "completionTime")
    assert space.at(JOBS, "indexed", "status", "completedIndexes") == "0-1"
    for pod in space.pods():
        assert "batch.kubernetes.io/job-tracking" not in pod["metadata"].get("finalizers", [])


def ttl_after_finished(space: Space) -> Steps:
    pods = template(restartPolicy="Never")
    space.create(JOBS, "short", spec={"ttlSecondsAfterFinished": 1, "template": pods})
    yield "gone", lambda: space.get(JOBS, "short") is None


def cronjob(space: Space) -> Steps:
    jobs = {"spec": {"template": template(restartPolicy="Never")}}
    missed = {"schedule": "* * * * *", "jobTemplate": jobs}
    space.create(CRON, "minutely", spec=missed)
    yield "last success", lambda: space.at(CRON, "minutely", "status", "lastSuccessfulTime")


def horizontalpodautoscaling(space: Space) -> Steps:
    space.create(DEPLOY, "web", spec=workload("web", 1))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    metrics = [{"type": "Resource", "resource": cpu}]
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4, "metrics": metrics}
    space.create(HPA, "web", spec=spec)
    yield "the minimum", lambda: space.at(DEPLOY, "web", "spec", "replicas") == 2


def endpoints(space: Space) -> Steps:
    ports = [{"port": 80}]
    space.create(SVC, "web", spec={"selector": {"app": "web"}, "ports": ports})
    space.create(RS, "web", spec=workload("web", 2))
    yield "both in Endpoints", lambda: len(_addresses(space.at(ENDPOINTS, "web", "subsets"))) == 2
    yield "both in slices", lambda: _count_ready(space, "web") == 2
    space.delete(SVC, "web")
    yield "Endpoints gone", lambda: space.get(ENDPOINTS, "web") is None
    yield "slices gone", lambda: not _slices(space, "web")


def _addresses(subsets: list[Json] | None) -> list[Json]:
    return [address for subset in subsets or () for address in subset.get("addresses", ())]


def _slices(space: Space, service: str) -> list[Json]:
    selector = f"kubernetes.io/service-name={service}"
    return space.api.list(space.path(SLICES), labelSelector=selector)


def _count_ready(space: Space, service: str) -> int:
    slices = _slices(space, service)
    return sum(e["conditions"].get("ready", False) for s in slices for e in s["endpoints"] or ())


def endpointslice_mirroring(space: Space) -> Steps:
    space.create(SVC, "db", spec={"ports": [{"port": 80}]})
    subsets = [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 80}]}]
    space.create(ENDPOINTS, "db", subsets=subsets)
    yield "a mirror", lambda: bool(_slices(space, "db"))


def serviceaccount(space: Space) -> Steps:
    yield "default", lambda: space.get(SA, "default")
    space.delete(SA, "default")
    yield "default again", lambda: space.get(SA, "default")
    yield "root certificate", lambda: space.get(CM, "kube-root-ca.crt")
    named = {"annotations": {"kubernetes.io/service-account.name": "default"}}
    space.create(SECRETS, "t", metadata=named, type="kubernetes.io/service-account-token")
    yield "a token", lambda: space.at(SECRETS, "t", "data", "token")
    token = base64.b64decode(space.at(SECRETS, "t", "data", "token")).decode()
    review = {"spec": {"token": token}}
    answer = space.api.create("/apis/authentication.k8s.io/v1/tokenreviews", review)
    user = f"system:serviceaccount:{space.name}:default"
    assert answer["status"].get("user", {}).get("username") == user, answer["status"]


def burst(space: Space, size: int = 100) -> Steps:
    """Of many objects at once, none is forgotten."""
    for number in range(size):
        space.create(RS, f"s{number}", spec=workload(f"s{number}", 0))

    def is_observed(obj: Json) -> bool:
        return bool(obj["status"].get("observedGeneration"))

    yield "all are observed", lambda: all(map(is_observed, space.api.list(space.path(RS))))
    assert len(space.api.list(space.path(RS))) == size


CASES: tuple[Case, ...] = (
    burst,
    replicaset,
    deployment,
    fields_of_later,
    replicationcontroller,
    statefulset,
    daemonset,
    job,
    ttl_after_finished,
    horizontalpodautoscaling,
    endpoints,
    endpointslice_mirroring,
    serviceaccount,
)
