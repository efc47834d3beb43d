"""Manifests of the tests of control planes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "nginx:1.27"}]}
"""
CRON_TABS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def deployment(name: str, replicas: int = 2) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template({"app": name}),
        },
    }


def template(
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: object,
) -> Json:
    metadata = {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
    container = {"name": "main", "image": "nginx:1.27"}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def pod(name: str, annotations: Mapping[str, str] | None = None) -> Json:
    made = template({"app": name}, annotations)
    made["metadata"]["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **made}


def job(name: str, *, run_for: str = "30s", ttl: int | None = None) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": job_spec(run_for, ttl),
    }


def job_spec(run_for: str, ttl: int | None = None) -> Json:
    made = template(annotations={"simulation.kcm.dev/run-for": run_for}, restartPolicy="Never")
    return {"template": made, **({} if ttl is None else {"ttlSecondsAfterFinished": ttl})}


def cron_job(name: str, schedule: str, *, history: int = 3) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "schedule": schedule,
            "successfulJobsHistoryLimit": history,
            "jobTemplate": {"spec": job_spec("30s")},
        },
    }
