"""`WriteAttributes`: what policies may know of a write."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kcm.api import codec
from kcm.api.admissionregistration_v1 import CREATE, DELETE
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.users import User
from kcm.apiserver.scales import scale_of

_OPTIONS = {CREATE: "CreateOptions", DELETE: "DeleteOptions"}
_CORE_NAMESPACES = "namespaces"


@dataclass(frozen=True)
class WriteAttributes:
    """A write of an object that is about to be stored, in the version of the request."""

    operation: str  # CREATE, UPDATE or DELETE
    resource: Resource
    subresource: str
    namespace: str
    name: str
    new: KubeObject | None  # None for a deletion
    old: KubeObject | None  # None for a creation
    user: User
    dry_run: bool = False

    @property
    def is_namespace(self) -> bool:
        return self.resource.name == _CORE_NAMESPACES

    @cached_property
    def namespace_name(self) -> str:
        """The namespace of the object, "" for objects without one and for namespaces."""
        return "" if self.is_namespace else self.namespace

    def to_json(self, matched: Resource) -> dict[str, Any]:
        """Returns object and oldObject as JSON values, in the version that a rule matched."""
        return {
            "object": self._json(self.new, matched),
            "oldObject": self._json(self.old, matched),
        }

    def _json(self, obj: KubeObject | None, matched: Resource) -> Any:
        if obj is None:
            return None
        if self.subresource == "scale":
            return scale_of(obj, self.resource)
        if matched is not self.resource:
            obj = codec.decode_stored(codec.encode_stored(obj, self.resource), matched)
        return json.loads(codec.encode(obj))

    def describe(self, matched: Resource) -> dict[str, Any]:
        """Returns the value of the variable `request`, an AdmissionRequest without objects."""
        user = self.user
        about: dict[str, Any] = {
            "uid": str(uuid.uuid4()),
            "kind": _kind(matched),
            "resource": _resource(matched),
            "subResource": self.subresource,
            "requestKind": _kind(self.resource),
            "requestResource": _resource(self.resource),
            "requestSubResource": self.subresource,
            "name": self.name,
            "namespace": self.namespace,
            "operation": self.operation,
            "userInfo": {
                "username": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {name: list(values) for name, values in user.extra},
            },
            "dryRun": self.dry_run,
            "options": {
                "kind": _OPTIONS.get(self.operation, "UpdateOptions"),
                "apiVersion": "meta.k8s.io/v1",
            },
        }
        if self.subresource == "scale":
            about["kind"] = about["requestKind"] = {
                "group": "autoscaling", "version": "v1", "kind": "Scale",
            }  # fmt: skip
        return about

    def to_check(self) -> Mapping[str, str]:
        """Returns the fields of `authorizer.requestResource`."""
        return {
            "group": self.resource.group,
            "resource": self.resource.plural,
            "subresource": self.subresource,
            "namespace": self.namespace,
            "name": self.name,
        }


def _kind(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}
