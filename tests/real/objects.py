"""The kinds and the objects of cases."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from tests.real.client import Json
from tests.real.runner import Step

Steps = Generator[Step, None, None]

# The kinds, each with the path of its group and version.
PODS, CM, SVC = "v1/pods", "v1/configmaps", "v1/services"
SA, SECRETS = "v1/serviceaccounts", "v1/secrets"
PVC, QUOTA, RC = "v1/persistentvolumeclaims", "v1/resourcequotas", "v1/replicationcontrollers"
ENDPOINTS, SLICES = "v1/endpoints", "discovery.k8s.io/v1/endpointslices"
RS, DEPLOY = "apps/v1/replicasets", "apps/v1/deployments"
STS, DS = "apps/v1/statefulsets", "apps/v1/daemonsets"
JOBS, CRON, PDB = "batch/v1/jobs", "batch/v1/cronjobs", "policy/v1/poddisruptionbudgets"
HPA = "autoscaling/v2/horizontalpodautoscalers"
TEMPLATES, CLAIMS = "resource.k8s.io/v1/resourceclaimtemplates", "resource.k8s.io/v1/resourceclaims"
THINGS = "real.example.com/v1/things"  # a custom kind
PAGE = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def template(labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
    pod = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {"metadata": {"labels": dict(labels or {})}, "spec": pod}


def workload(app: str, replicas: int, **spec: Any) -> Json:
    labels = {"app": app}
    body = {"selector": {"matchLabels": labels}, "template": template(labels, **spec)}
    return {**body, "replicas": replicas}


def owner(kind: str, api_version: str, obj: Json, *, blocks: bool = False) -> list[Json]:
    meta = obj["metadata"]
    reference = {"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"]}
    return [{**reference, "blockOwnerDeletion": blocks}]
