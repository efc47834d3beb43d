"""`WriteAttributes`: what policies and webhooks may know of a write."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apiextensions import conversion
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.scales import scale_of

_CORE_NAMESPACES = "namespaces"
SCALE = "scale"  # the subresource whose object is a Scale


@dataclass(frozen=True)
class WriteAttributes:
    """A write of an object that is about to be stored, in the version of the request."""

    operation: str  # CREATE, UPDATE, DELETE or CONNECT
    resource: Resource
    subresource: str
    namespace: str
    name: str
    new: KubeObject | None  # None for a deletion
    old: KubeObject | None  # None for a creation
    user: User
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)  # of the verb, with their kind
    # The object of the request with its kind, if it is not an object of the resource that is to be
    # stored: an Eviction, a Binding, the options of a connection. `new` is None then.
    sent: Mapping[str, Any] | None = None

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
            "object": json.loads(self.new_text(matched)),
            "oldObject": json.loads(self.old_text(matched)),
        }

    def new_text(self, matched: Resource) -> bytes:
        """Returns the new object as JSON, in the version that a rule matched."""
        if self.sent is not None:
            return json.dumps(self.sent).encode()
        return self._text(self.new, matched)

    def old_text(self, matched: Resource) -> bytes:
        """Returns the old object as JSON, in the version that a rule matched."""
        return self._text(self.old, matched)

    def _text(self, obj: KubeObject | None, matched: Resource) -> bytes:
        if obj is None:
            return b"null"
        if self.subresource == SCALE:
            return json.dumps(scale_of(obj, self.resource)).encode()
        if matched is not self.resource:
            obj = conversion.to_version(obj, self.resource, matched)
        return codec.encode(obj)

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
            "options": dict(self.options) or None,
        }
        if self.sent is not None:
            about["kind"] = about["requestKind"] = _kind_of(self.sent)
        if self.subresource == SCALE:
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


def _kind_of(sent: Mapping[str, Any]) -> dict[str, str]:
    group, _, version = str(sent.get("apiVersion", "")).rpartition("/")
    return {"group": group, "version": version, "kind": str(sent.get("kind", ""))}
