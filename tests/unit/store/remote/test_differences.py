"""An update sends what a controller changed, and leaves every other field as the server gave it."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Pod, Service
from kcm.api.scaling import put
from kcm.api.scheme import BUILT_IN, Resource
from kcm.informers.views import metadata_view
from kcm.store.merge import merge_patch
from kcm.store.options import Subresource
from kcm.store.remote.differences import Change, find_change
from tests.every_field import build_every_field

NONE, STATUS = Subresource.NONE, Subresource.STATUS
FINALIZE, APPROVAL, SCALE = Subresource.FINALIZE, Subresource.APPROVAL, Subresource.SCALE
TEXT, OWNERS, FINALIZERS = "metadata.annotations", "metadata.ownerReferences", "metadata.finalizers"
CONDITIONS: list[dict[str, Any]] = [{"type": "Ready", "status": "True"}]

# What controllers change: the kind, the subresource, the field and its new value.
CHANGES: list[tuple[str, Subresource, str, Any]] = [
    ("certificatesigningrequests.certificates.k8s.io", APPROVAL, "status.conditions", CONDITIONS),
    ("certificatesigningrequests.certificates.k8s.io", STATUS, "status.certificate", "YWJj"),
    ("clusterroles.rbac.authorization.k8s.io", NONE, "rules", [{"verbs": ["get"]}]),
    ("clustertrustbundles.certificates.k8s.io", NONE, "spec.trustBundle", "other"),
    ("configmaps", NONE, "data.key", "other"),
    ("controllerrevisions.apps", NONE, "revision", 8),
    ("cronjobs.batch", STATUS, "status.active", []),
    ("daemonsets.apps", STATUS, "status.numberReady", 3),
    ("deployments.apps", STATUS, "status.collisionCount", 1),
    ("deployments.apps", STATUS, TEXT, {"deployment.kubernetes.io/revision": "2"}),
    ("endpoints", NONE, "subsets", []),
    ("endpointslices.discovery.k8s.io", NONE, "endpoints", []),
    ("horizontalpodautoscalers.autoscaling", STATUS, "status.currentReplicas", 3),
    ("jobs.batch", STATUS, "status.succeeded", 3),
    ("namespaces", FINALIZE, "spec.finalizers", None),
    ("namespaces", STATUS, "status.conditions", CONDITIONS),
    ("nodes", NONE, "spec.taints", [{"key": "a", "effect": "NoExecute"}]),
    ("nodes", NONE, TEXT, {"node.alpha.kubernetes.io/ttl": "15"}),
    ("nodes", STATUS, "status.conditions", CONDITIONS),
    ("nodes", STATUS, "status.volumesAttached", None),
    ("persistentvolumeclaims", NONE, "spec.volumeName", "v"),
    ("persistentvolumeclaims", NONE, FINALIZERS, None),
    ("persistentvolumeclaims", STATUS, "status.phase", "Bound"),
    ("persistentvolumes", NONE, "spec.claimRef", None),
    ("persistentvolumes", STATUS, "status.phase", "Bound"),
    ("poddisruptionbudgets.policy", STATUS, "status.disruptionsAllowed", 1),
    ("pods", NONE, FINALIZERS, ["other"]),
    ("pods", NONE, OWNERS, None),
    ("pods", STATUS, "status.conditions", CONDITIONS),
    ("replicasets.apps", NONE, "spec.replicas", 3),
    ("replicasets.apps", STATUS, "status.replicas", 3),
    ("replicationcontrollers", STATUS, "status.replicas", 3),
    ("resourcequotas", STATUS, "status.used", {"pods": "3"}),
    ("secrets", NONE, "data", {"token": "YWJj"}),
    ("serviceaccounts", NONE, "secrets", []),
    ("servicecidrs.networking.k8s.io", NONE, FINALIZERS, ["networking.k8s.io/service-cidr"]),
    ("servicecidrs.networking.k8s.io", STATUS, "status.conditions", []),
    ("services", NONE, FINALIZERS, None),
    ("services", STATUS, "status.loadBalancer", {}),
    ("statefulsets.apps", STATUS, "status.readyReplicas", 3),
    ("validatingadmissionpolicies.admissionregistration.k8s.io", STATUS, "status.typeChecking", {}),
    ("volumeattributesclasses.storage.k8s.io", NONE, FINALIZERS, ["protection"]),
]


def change(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Returns the JSON with another value at a path, without the field for None."""
    if value is not None:
        return put(body, path, value)
    *inner, last = path.split(".")
    parent = body
    for step in inner:
        parent = parent[step]
    left = {name: kept for name, kept in parent.items() if name != last}
    return put(body, ".".join(inner), left)


def read(body: dict[str, Any], resource: Resource) -> Any:
    return codec.decode(body, resource, keep_unknown=True)


def carry_out(update: Change, stored: dict[str, Any]) -> Any:
    """Returns what the server has after the request."""
    method, content_type, body = update.request()
    if method == "PUT":
        assert content_type == "application/json"
        return body
    assert content_type == "application/merge-patch+json"
    return merge_patch(stored, body)


@pytest.mark.parametrize(("kind", "part", "path", "value"), CHANGES)
def test_what_a_controller_does_not_change_stays_as_the_server_gave_it(
    kind: str, part: Subresource, path: str, value: Any
) -> None:
    resource = BUILT_IN.by_name(kind)
    stored = build_every_field(resource)
    wanted = change(stored, path, value)
    update = find_change(read(wanted, resource), read(stored, resource), part)
    assert update is not None
    assert carry_out(update, stored) == wanted


@pytest.mark.parametrize("resource", BUILT_IN.resources(), ids=str)
def test_an_annotation_of_any_kind_is_all_that_changes(resource: Resource) -> None:
    stored = build_every_field(resource)
    wanted = change(stored, TEXT, {"key": "other"})
    update = find_change(read(wanted, resource), read(stored, resource), NONE)
    assert update is not None
    assert carry_out(update, stored) == wanted


def test_an_update_pins_the_object_that_was_read() -> None:
    stored = build_every_field(Pod.resource)
    old, new = read(stored, Pod.resource), read(change(stored, TEXT, {}), Pod.resource)
    update = find_change(new, old, NONE)
    assert update is not None
    method, _, body = update.request()
    pins = {"uid": "uid-1", "resourceVersion": "41"}
    assert (method, body) == ("PATCH", {"metadata": {"annotations": {"key": None}, **pins}})


def test_the_finalizer_of_a_service_is_written_with_the_right_to_write_its_status() -> None:
    """It is all that the role of upstream's service controller has."""
    stored = build_every_field(Service.resource)
    service = read(stored, Service.resource)
    update = find_change(service.with_metadata(finalizers=None), service, NONE)
    assert update is not None
    assert update.subresource is STATUS
    assert update.request()[0] == "PATCH"


def test_a_status_write_takes_nothing_else_along() -> None:
    """It may have been computed from an older version of the object."""
    stored = build_every_field(Pod.resource)
    older = change(change(stored, "spec.nodeName", "n1"), TEXT, {"older": "yes"})
    new = read(change(older, "status.phase", "Failed"), Pod.resource)
    update = find_change(new, read(stored, Pod.resource), STATUS)
    assert update is not None
    assert update.patch == {"status": {"phase": "Failed"}}
    assert find_change(read(older, Pod.resource), read(stored, Pod.resource), STATUS) is None


def test_what_only_the_server_writes_is_no_change() -> None:
    stored = build_every_field(Pod.resource)
    older = change(change(stored, "metadata.resourceVersion", "40"), "metadata.generation", 3)
    pods = read(older, Pod.resource), read(stored, Pod.resource)
    assert find_change(*pods, NONE) is None


def test_an_object_of_which_only_metadata_is_known_is_patched() -> None:
    resource = BUILT_IN.lookup("replicasets")
    whole = build_every_field(resource)
    partial = metadata_view(resource).decode(codec.encode(read(whole, resource)))
    update = find_change(partial.with_metadata(finalizers=None), partial, NONE)
    assert update is not None
    assert carry_out(update, whole) == change(whole, FINALIZERS, None)


def test_a_scale_is_written_through_its_subresource() -> None:
    resource = BUILT_IN.lookup("deployments")
    stored = change(build_every_field(resource), "spec.selector", {"matchLabels": {"a": "b"}})
    new = read(change(stored, "spec.replicas", 5), resource)
    update = find_change(new, read(stored, resource), SCALE)
    assert update is not None
    method, _, body = update.request()
    pins = {"name": "a", "namespace": "n", "uid": "uid-1", "resourceVersion": "41"}
    assert method == "PUT"
    assert body == {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": pins,
        "spec": {"replicas": 5},
    }
