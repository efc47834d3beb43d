"""What a controller changed of an object, and the request that changes just that.

A typed object is a view for reading. What is sent is the difference of its state before and after,
laid on the object as the server gave it, so that whatever else it has stays as it is: fields of a
later version, and values that kcm would default, reorder or drop. kcm's models keep what they do
not know, so the encoding of a cached object is what the server gave (design 0061).

Source: the verbs and subresources of
plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go, and PatchService in
staging/src/k8s.io/cloud-provider/service/helpers/helper.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kcm.api import codec
from kcm.api.scaling import scale_of
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.merge import merge_patch, three_way
from kcm.store.options import Subresource
from kcm.store.remote.rest import JSON

Body = Mapping[str, Any]
MERGE_PATCH = "application/merge-patch+json"

# The kinds that upstream's roles let controllers patch, and mostly not update. Most other kinds
# they may only update.
_PATCHED = frozenset({"pods", "nodes"})
# Of these, the metadata.
_PATCHED_METADATA = frozenset({"secrets", "services"})
# The finalizer of a load balancer is written with the right to write the status.
_METADATA_BY_STATUS = frozenset({"services"})
# What only the server writes. Controllers derive the new object from an old one, which may be older
# than the object that is changed.
_SERVERS_METADATA = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
_OF_STATUS = frozenset({Subresource.STATUS, Subresource.APPROVAL})
_ANNOTATED_WITH_STATUS = frozenset({"deployments.apps"})  # their revision, as upstream


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an object: a merge patch (RFC 7396), and the object that it was made of."""

    old: KubeObject
    new: KubeObject
    patch: Body
    subresource: Subresource

    def request(self) -> tuple[str, str, Any]:
        """Returns the method, the type of the content and the body of the request.

        The body pins uid and resourceVersion of the old object.
        """
        meta = self.old.metadata
        pinned = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        pins = {"metadata": {name: value for name, value in pinned.items() if value}}
        if self.subresource == Subresource.SCALE:
            return "PUT", JSON, merge_patch(_scale_body(self.new), pins)
        if self._is_patched():
            return "PATCH", MERGE_PATCH, merge_patch(self.patch, pins)
        return "PUT", JSON, merge_patch(merge_patch(codec.to_dict(self.old), self.patch), pins)

    def _is_patched(self) -> bool:
        name = self.old.resource.name
        if name in _PATCHED_METADATA:
            return self.patch.keys() == {"metadata"}
        return name in _PATCHED or self.old.metadata_only


def find_change(new: KubeObject, old: KubeObject, subresource: Subresource) -> Change | None:
    """Returns what was changed from `old` to `new`, None if that is nothing.

    Only what may be written through the subresource counts.
    """
    parts = codec.list_unshared(new, old)
    if subresource in _OF_STATUS:
        is_annotated = old.resource.name in _ANNOTATED_WITH_STATUS
        parts &= {"status", "metadata"} if is_annotated else {"status"}
    else:
        parts -= {"status"}
    before, after = codec.to_dict(old, parts), codec.to_dict(new, parts)
    patch = three_way(before, after, before)
    meta = {
        name: value
        for name, value in patch.pop("metadata", {}).items()
        if name not in _SERVERS_METADATA
        and (subresource not in _OF_STATUS or name == "annotations")
    }
    if meta:
        patch["metadata"] = meta
    if not patch:
        return None
    if old.resource.name in _METADATA_BY_STATUS and patch.keys() == {"metadata"}:
        subresource = Subresource.STATUS
    return Change(old, new, patch, subresource)


def _scale_body(obj: KubeObject) -> Body:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": obj.name, "namespace": obj.namespace},
        "spec": {"replicas": scale_of(obj, obj.resource).replicas},
    }
