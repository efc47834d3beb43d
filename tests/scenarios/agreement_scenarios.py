"""The scenarios on whose final states all control planes agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcm.testing import ControlPlane
from tests.scenarios.agreement import KINDS, Json, Scenario, Step

# --- manifests


def template(
    name: str, annotations: Mapping[str, str] | None = None, image: str = "nginx:1.27", **spec: Any
) -> Json:
    container = {"name": "main", "image": image, **spec.pop("container", {})}
    metadata = {"labels": {"app": name}, "annotations": simulate(**(annotations or {}))}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def simulate(**wanted: str) -> dict[str, str]:
    return {f"simulation.kcm.dev/{n.replace('_', '-')}": v for n, v in wanted.items()}


def workload(kind: str, name: str, replicas: int = 2, **spec: Any) -> Json:
    made = spec.pop("template", None) or template(name)
    selector: Any = {"matchLabels": {"app": name}}
    version = "apps/v1"
    if kind == "ReplicationController":
        version, selector = "v1", {"app": name}
    count = {} if kind == "DaemonSet" else {"replicas": replicas}
    own = {"selector": selector, "template": made, **count, **spec}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": own}


def job(name: str, does: Mapping[str, str], **spec: Any) -> Json:
    own = {"template": template(name, does, restartPolicy="Never"), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": own}


def service(name: str, selects: str = "", **spec: Any) -> Json:
    own = {"ports": [{"port": 80}], **({"selector": {"app": selects}} if selects else {}), **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": own}


def pod(name: str, does: Mapping[str, str] | None = None, **spec: Any) -> Json:
    made = template(name, does, **spec)
    made["metadata"]["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **made}


def core(kind: str, name: str, **fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


# --- what is awaited


def condition(name: str, type_: str, status: str = "True") -> Step:
    def holds(plane: ControlPlane, namespace: str) -> bool:
        conditions = plane.get(name, namespace).get("status", {}).get("conditions", [])
        return any(c["type"] == type_ and c["status"] == status for c in conditions)

    return holds


def status(name: str, **fields: Any) -> Step:
    def holds(plane: ControlPlane, namespace: str) -> bool:
        has = plane.get(name, namespace).get("status", {})
        return all(has.get(field) == value for field, value in fields.items())

    return holds


def count(kind: str, number: int, **phase: str) -> Step:
    def holds(plane: ControlPlane, namespace: str) -> bool:
        objects = plane.list(kind, namespace)
        stay = [one for one in objects if "deletionTimestamp" not in one["metadata"]]
        fit = [one for one in stay if phase.items() <= one.get("status", {}).items()]
        return len(objects) == len(fit) == number

    return holds


def both(*steps: Step) -> Step:
    return lambda plane, namespace: all(step(plane, namespace) for step in steps)


def ready_endpoints(name: str, number: int) -> Step:
    def holds(plane: ControlPlane, namespace: str) -> bool:
        slices = plane.list("endpointslices", namespace, f"kubernetes.io/service-name={name}")
        endpoints = [one for part in slices for one in part.get("endpoints") or ()]
        return [one["conditions"].get("ready") for one in endpoints].count(True) == number

    return holds


def apply(manifest: Json) -> Step:
    return lambda plane, namespace: plane.apply(manifest, namespace)


def delete(name: str) -> Step:
    return lambda plane, namespace: plane.delete(name, namespace)


def orphan(path: str) -> Step:
    def act(plane: ControlPlane, namespace: str) -> None:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}
        url = f"/apis/apps/v1/namespaces/{namespace}/{path}"
        plane.objects.client.request("DELETE", url, json=body).raise_for_status()

    return act


AVAILABLE = condition("deployment/web", "Available")
WEB = workload("Deployment", "web")
RUNNING = {"phase": "Running"}
REQUESTS: Json = {"container": {"resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}}
IMPOSSIBLE: Json = {"container": {"resources": {"requests": {"cpu": "1000"}}}}
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "simulated",
    "resources": {"requests": {"storage": "1Gi"}},
}
USES_CLAIM: Json = {
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    "container": {"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
}
ROLLED_OUT = status("deployment/web", replicas=2, updatedReplicas=2, availableReplicas=2)
SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 4,
        "maxReplicas": 6,
    },
}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
CRON = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "report"},
    "spec": {
        "schedule": "0 0 1 1 *",
        "suspend": True,
        "jobTemplate": {"spec": job("report", {"run_for": "1s"})["spec"]},
    },
}
ADDRESSES = {
    **core("Endpoints", "outside"),
    "subsets": [{"addresses": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}], "ports": [{"port": 80}]}],
}

SCENARIOS = (
    Scenario("deployment", [WEB], ROLLED_OUT),
    Scenario(
        "deployment-scaled-down",
        [workload("Deployment", "web", 4)],
        both(status("deployment/web", replicas=1, availableReplicas=1), count("pods", 1)),
        [(status("deployment/web", availableReplicas=4), apply(workload("Deployment", "web", 1)))],
    ),
    Scenario(
        "deployment-updated",
        [WEB],
        both(ROLLED_OUT, count("replicasets", 2), count("pods", 2)),
        [
            (
                ROLLED_OUT,
                apply(workload("Deployment", "web", template=template("web", image="nginx:1.28"))),
            )
        ],
    ),
    Scenario(
        "deployment-recreated",
        [workload("Deployment", "web", strategy={"type": "Recreate"})],
        both(ROLLED_OUT, count("replicasets", 2), count("pods", 2)),
        [
            (
                ROLLED_OUT,
                apply(
                    workload(
                        "Deployment",
                        "web",
                        strategy={"type": "Recreate"},
                        template=template("web", image="nginx:1.28"),
                    )
                ),
            )
        ],
    ),
    Scenario(
        "deployment-paused",
        [workload("Deployment", "web", paused=True)],
        status("deployment/web", observedGeneration=1),
    ),
    Scenario(
        "deployment-deleted",
        [WEB],
        both(count("deployments", 0), count("replicasets", 0), count("pods", 0)),
        [(AVAILABLE, delete("deployment/web"))],
    ),
    Scenario(
        "deployment-orphans",
        [WEB],
        both(count("deployments", 0), count("replicasets", 1), count("pods", 2, **RUNNING)),
        [(ROLLED_OUT, orphan("deployments/web"))],
    ),
    Scenario("replicaset", [workload("ReplicaSet", "web")], status("rs/web", availableReplicas=2)),
    Scenario(
        "replicaset-heals",
        [workload("ReplicaSet", "web", 1, template=template("web"))],
        both(status("rs/web", availableReplicas=1), count("pods", 1, **RUNNING)),
        [
            (
                status("rs/web", availableReplicas=1),
                lambda plane, ns: plane.delete(
                    f"pod/{plane.list('pods', ns)[0]['metadata']['name']}", ns
                ),
            )
        ],
    ),
    Scenario(
        "replicationcontroller",
        [workload("ReplicationController", "web")],
        status("rc/web", availableReplicas=2),
    ),
    Scenario(
        "statefulset",
        [service("db", "db", clusterIP="None"), workload("StatefulSet", "db", 3, serviceName="db")],
        status("sts/db", availableReplicas=3),
    ),
    Scenario(
        "statefulset-parallel",
        [workload("StatefulSet", "db", 3, podManagementPolicy="Parallel", serviceName="db")],
        status("sts/db", availableReplicas=3),
    ),
    Scenario(
        "statefulset-scaled-down",
        [workload("StatefulSet", "db", 3, serviceName="db")],
        both(status("sts/db", replicas=1, availableReplicas=1), count("pods", 1)),
        [
            (
                status("sts/db", availableReplicas=3),
                apply(workload("StatefulSet", "db", 1, serviceName="db")),
            )
        ],
    ),
    Scenario(
        "statefulset-with-claims",
        [
            workload(
                "StatefulSet",
                "db",
                2,
                serviceName="db",
                volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": CLAIM}],
            )
        ],
        status("sts/db", availableReplicas=2),
    ),
    Scenario(
        "daemonset",
        [workload("DaemonSet", "agent")],
        status("ds/agent", numberReady=3, desiredNumberScheduled=3, observedGeneration=1),
    ),
    Scenario("job", [job("once", {"run_for": "1s"})], condition("job/once", "Complete")),
    Scenario(
        "job-of-three",
        [job("once", {"run_for": "1s"}, completions=3, parallelism=3)],
        both(condition("job/once", "Complete"), status("job/once", succeeded=3)),
    ),
    Scenario(
        "job-indexed",
        [job("once", {"run_for": "1s"}, completions=2, parallelism=2, completionMode="Indexed")],
        both(condition("job/once", "Complete"), status("job/once", completedIndexes="0,1")),
    ),
    Scenario(
        "job-failed",
        [job("once", {"outcome": "fail", "run_for": "1s"}, backoffLimit=0)],
        condition("job/once", "Failed"),
    ),
    Scenario(
        "job-suspended",
        [job("once", {"run_for": "1s"}, suspend=True)],
        condition("job/once", "Suspended"),
    ),
    Scenario(
        "job-cleaned-up",
        [job("once", {"run_for": "1s"}, ttlSecondsAfterFinished=1)],
        both(count("jobs", 0), count("pods", 0)),
        [(condition("job/once", "Complete"), lambda plane, ns: None)],
    ),
    Scenario("cronjob-suspended", [CRON], count("cronjobs", 1)),
    Scenario("service", [WEB, service("web", "web")], both(ROLLED_OUT, ready_endpoints("web", 2))),
    Scenario(
        "service-headless",
        [WEB, service("web", "web", clusterIP="None")],
        both(ROLLED_OUT, ready_endpoints("web", 2)),
    ),
    Scenario(
        "service-of-cloud",
        [WEB, service("web", "web", type="LoadBalancer")],
        both(
            ROLLED_OUT,
            ready_endpoints("web", 2),
            lambda plane, ns: plane.get("service/web", ns)["status"]["loadBalancer"].get("ingress"),
        ),
    ),
    Scenario(
        "endpoints-mirrored",
        [service("outside"), ADDRESSES],
        lambda plane, ns: any(
            len(one.get("endpoints") or ()) == 2 for one in plane.list("endpointslices", ns)
        ),
    ),
    Scenario(
        "budget",
        [WEB, BUDGET],
        both(ROLLED_OUT, status("pdb/web", currentHealthy=2, disruptionsAllowed=1)),
    ),
    Scenario(
        "quota",
        [
            core("ResourceQuota", "few", spec={"hard": {"pods": "2", "requests.cpu": "1"}}),
            workload("ReplicaSet", "web", 2, template=template("web", **REQUESTS)),
        ],
        both(
            status("rs/web", availableReplicas=2),
            status(
                "quota/few",
                hard={"pods": "2", "requests.cpu": "1"},
                used={"pods": "2", "requests.cpu": "200m"},
            ),
        ),
    ),
    Scenario(
        "limits",
        [
            core(
                "LimitRange",
                "defaults",
                spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": "50m"}}]},
            ),
            workload("ReplicaSet", "web", 1),
        ],
        status("rs/web", availableReplicas=1),
    ),
    Scenario(
        "claim",
        [core("PersistentVolumeClaim", "data", spec=CLAIM), pod("user", **USES_CLAIM)],
        both(status("pvc/data", phase="Bound"), condition("pod/user", "Ready")),
    ),
    Scenario(
        "unschedulable",
        [pod("huge", **IMPOSSIBLE)],
        condition("pod/huge", "PodScheduled", "False"),
    ),
    Scenario(
        "init-container",
        [
            pod(
                "steps",
                {"run_for.prepare": "1s", "outcome.prepare": "succeed"},
                initContainers=[{"name": "prepare", "image": "busybox"}],
            )
        ],
        condition("pod/steps", "Ready"),
    ),
    Scenario(
        "pod-failed",
        [pod("broken", {"outcome": "fail", "run_for": "1s"}, restartPolicy="Never")],
        status("pod/broken", phase="Failed"),
    ),
    Scenario(
        "autoscaler-minimum",
        [WEB, SCALER],
        both(status("deployment/web", availableReplicas=4), status("hpa/web", desiredReplicas=4)),
        kinds=tuple(kind for kind in KINDS if kind != "horizontalpodautoscalers"),
    ),
)
