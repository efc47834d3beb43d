"""A kopf operator: Workspaces get a Deployment with as many replicas as their plan has seats.

Plans are ConfigMaps, which an index collects. Webhooks fill plans in and refuse unknown ones, a
handler of the field moves a Workspace to another plan, events of Deployments become the status, a
daemon counts as long as the Workspace lives, and a last handler leaves a note.
"""

# mypy: disable-error-code="arg-type"
# Handlers get indexes by their names, of which kopf's types know nothing.

from __future__ import annotations

import os
from typing import Any

import kopf
import kubernetes

GROUP, VERSION, PLURAL = "example.com", "v1", "workspaces"
LABEL = "example.com/workspace"
Plans = kopf.Index[str, int]


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    kubernetes.config.load_kube_config()
    folder = os.environ["CERTIFICATES"]
    settings.posting.enabled = False
    settings.admission.managed = "workspaces.example.com"
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        host="127.0.0.1",
        cafile=f"{folder}/webhooks.crt",
        certfile=f"{folder}/127.0.0.1.crt",
        pkeyfile=f"{folder}/127.0.0.1.key",
    )


@kopf.index("", "v1", "configmaps", labels={"example.com/plan": kopf.PRESENT})
def plans(name: str, body: kopf.Body, **_: Any) -> dict[str, int]:
    return {name: int(body["data"]["seats"])}


@kopf.on.mutate(GROUP, VERSION, PLURAL, operations=["CREATE", "UPDATE"])
def fill_in(spec: kopf.Spec, patch: kopf.Patch, userinfo: Any, operation: Any, **_: Any) -> None:
    if "plan" not in spec:
        patch.spec["plan"] = "small"
    if operation == "CREATE":
        patch.metadata.annotations["example.com/created-by"] = userinfo["username"]


@kopf.on.validate(GROUP, VERSION, PLURAL, operations=["CREATE", "UPDATE"])
def check(spec: kopf.Spec, old: Any, plans: Any, warnings: list[str], **_: Any) -> None:
    if spec["plan"] not in plans:
        raise kopf.AdmissionError(f"there is no plan {spec['plan']}", code=422)
    before = (old or {}).get("spec", {}).get("plan", spec["plan"])
    if before in plans and _seats(plans, spec["plan"]) < _seats(plans, before):
        warnings.append(f"{spec['plan']} has fewer seats than {before}")


def _seats(plans: Plans, plan: str) -> int:
    return next(iter(plans[plan]))


@kopf.on.create(GROUP, VERSION, PLURAL)
@kopf.on.resume(GROUP, VERSION, PLURAL)
def build(body: kopf.Body, name: str, namespace: Any, plans: Any, **_: Any) -> None:
    labels = {LABEL: name}
    deployment: Any = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": _seats(plans, body["spec"]["plan"]),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "desk", "image": "desk:1"}]},
            },
        },
    }
    kopf.adopt(deployment, owner=body)
    try:
        kubernetes.client.AppsV1Api().create_namespaced_deployment(namespace, deployment)
    except kubernetes.client.ApiException as error:
        if error.status != 409:  # it is there since before the operator's restart
            raise


@kopf.on.field(GROUP, VERSION, PLURAL, field="spec.plan")
def move(old: str | None, new: str, name: str, namespace: Any, plans: Any, **_: Any) -> None:
    if old is not None:
        change = {"spec": {"replicas": _seats(plans, new)}}
        kubernetes.client.AppsV1Api().patch_namespaced_deployment(name, namespace, change)


@kopf.on.event("apps", "v1", "deployments", labels={LABEL: kopf.PRESENT})
def follow(type: str | None, status: kopf.Status, labels: Any, namespace: Any, **_: Any) -> None:
    ready = 0 if type == "DELETED" else status.get("readyReplicas", 0)
    _report(namespace, labels[LABEL], ready=ready)


@kopf.daemon(GROUP, VERSION, PLURAL, cancellation_timeout=5)
def count(stopped: Any, name: str, namespace: Any, **_: Any) -> None:
    beats = 0
    while not stopped:
        beats += 1
        _report(namespace, name, beats=beats)
        stopped.wait(0.3)


@kopf.on.delete(GROUP, VERSION, PLURAL)
def close(name: str, namespace: Any, **_: Any) -> None:
    note: Any = {"metadata": {"name": f"{name}-closed"}}
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, note)


def _report(namespace: Any, name: str, **status: int) -> None:
    """Writes fields of a Workspace's status, if there is such a Workspace."""
    try:
        kubernetes.client.CustomObjectsApi().patch_namespaced_custom_object_status(
            GROUP, VERSION, namespace, PLURAL, name, {"status": status}
        )
    except kubernetes.client.ApiException as error:
        if error.status != 404:
            raise
