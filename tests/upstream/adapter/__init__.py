"""The one place where upstream's cases call kcm: when a function of kcm moves, it is mended here,
or for custom kinds in the module beside.

Objects go in and come out as JSON values. `NotExpressible` says that kcm has no place where a case
could be put.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.certificates_v1 import CertificateSigningRequest
from kcm.api.core_v1 import Namespace, PersistentVolume, Pod
from kcm.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from kcm.api.scheme import BUILT_IN, Resource
from kcm.apimachinery.base import Model
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.auth.authorizer import AuthorizerDecision, Caller
from kcm.apiserver.auth.node.authorizer import NodeAuthorizer
from kcm.apiserver.auth.node.graph import ATTACHMENT, Graph
from kcm.apiserver.auth.node.restriction import NodeRestriction, NodeWrite, WantedToken
from kcm.apiserver.auth.rbac import RBAC
from kcm.apiserver.http.bodies import strategic
from kcm.controllers.certificates.csrapproving import CSRApprovingController
from kcm.controllers.volumes.persistentvolumebinder import PersistentVolumeBinderController
from kcm.kinds import defaults, validation
from kcm.kinds.validation import certificates
from kcm.store import rules
from kcm.store.options import Subresource
from kcm.testing.world import World
from tests.unit.apiserver.auth.caches import FakeHub
from tests.upstream.cases import Case

Json = Any

_KINDS = {(kind.api_version, kind.kind): kind for kind in BUILT_IN.resources()}
_PLURALS = {(kind.group, kind.plural): kind for kind in BUILT_IN.resources()}
_UID = "11111111-1111-1111-1111-111111111111"
_CREATED = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
_NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)
_ASKED = ("group", "resource", "subresource", "namespace", "name")
_CHECKS = {
    "": validation.validate_update,
    "finalize": validation.validate_finalize,
    "status": validation.validate_status_update,
    "ephemeralcontainers": validation.validate_ephemeral_containers,
    "resize": validation.validate_resize,
}


class NotExpressible(Exception):  # noqa: N818 # says what, as errors of Kubernetes do
    """kcm has no place where this case could be put."""


@dataclass(frozen=True)
class Verdict:
    """Whether kcm accepts an object, the fields of the faults, and its words."""

    accepted: bool
    fields: frozenset[str] = frozenset()
    words: str = ""


# --- Objects: validation, defaults, what is stored.


def resource_of(obj: Json) -> Resource:
    """Returns the resource of an object. Raises NotExpressible."""
    kind = _KINDS.get((obj["apiVersion"], obj["kind"]))
    if kind is None:
        raise NotExpressible(f"no kind {obj['apiVersion']} {obj['kind']}")
    return kind


def decode(obj: Json, api_version: str = "", kind: str = "") -> KubeObject:
    """Returns the object, with the apiVersion and kind that it has or that are given."""
    named = {**obj, "apiVersion": api_version, "kind": kind} if kind else obj
    return codec.decode(json.dumps(named), resource_of(named))


def apply_defaults(obj: Json) -> Json:
    """Returns the object with its defaults. Raises ApiError and NotExpressible."""
    return to_json(defaults.apply(decode(obj)))


def judge(case: Case) -> Verdict:
    """Returns kcm's verdict on the creation or update of an object. Raises NotExpressible."""
    try:
        _write(case, _NOW)
    except errors.Invalid as error:
        fields = frozenset(re.sub(r"\s", "", fault.field or "") for fault in error.causes)
        return Verdict(False, fields, str(error))
    except errors.ApiError as error:
        return Verdict(False, frozenset(), f"{type(error).__name__} {error}")
    return Verdict(True)


def store(case: Case, now: datetime) -> Json:
    """Returns what is stored after a valid creation or update. Raises as `judge`, and ApiError."""
    return to_json(_write(case, now))


def _write(case: Case, now: datetime) -> KubeObject:
    resource, part = resource_of(case["new"]), case.get("sub", "")
    if part == "approval":
        return _approve(decode(case["new"]), _as_stored(decode(case["old"])))
    if part not in _CHECKS:
        raise NotExpressible(f"{part} has a handler of its own")
    obj = defaults.apply(decode(case["new"]))
    if "old" not in case:
        new = obj.with_metadata(resource_version=None)
        return rules.prepare_create(new, resource, now, rng=random.Random(1))
    old = _as_stored(defaults.apply(decode(case["old"])))
    new = obj.with_metadata(resource_version=old.metadata.resource_version)
    if part == "finalize":
        assert isinstance(new, Namespace)
        assert isinstance(old, Namespace)
        new = old.with_spec(old.spec.replace(finalizers=new.spec.finalizers or None))
    updated = rules.prepare_modification(new, old, resource, Subresource(part))
    if updated is old:  # kcm validates no write that changes nothing, and the cases ask for it
        check: Any = _CHECKS[part]
        faults = check(updated, old)
        if faults:
            raise errors.Invalid(faults, kind=resource.kind, name=old.name or "")
    return updated


def _approve(new: KubeObject, old: KubeObject) -> KubeObject:
    assert isinstance(new, CertificateSigningRequest)
    assert isinstance(old, CertificateSigningRequest)
    if faults := certificates.approval_update(new, old):
        raise errors.Invalid(faults, kind=new.kind, name=new.name or "")
    return new


def _as_stored(old: KubeObject) -> KubeObject:
    """Returns an object with the metadata that every stored one has."""
    meta = old.metadata
    return old.with_metadata(
        uid=meta.uid or _UID,
        creation_timestamp=meta.creation_timestamp or _CREATED,
        resource_version=meta.resource_version or "1",
    )


def to_json(obj: KubeObject) -> Json:
    """Returns an object as JSON."""
    return json.loads(codec.encode(obj))


# --- Who may do what: roles, the authorizer of nodes, and NodeRestriction.


class NodeGraph:
    """A node authorizer over a graph that the cases fill."""

    def __init__(self) -> None:
        self._graph = Graph()

    def belongs(self, node: str, vertex: Any) -> bool:
        return self._graph.belongs(node, vertex)

    def change(self, operation: str, arguments: list[Any]) -> None:
        """Adds or deletes what one of upstream's graph functions does."""
        first = arguments[0]
        if operation == "AddPod":
            pod = decode(first, "v1", "Pod")
            assert isinstance(pod, Pod)
            self._graph.set_pod(pod.key, pod)
        elif operation == "DeletePod":
            self._graph.set_pod(f"{arguments[1]}/{first}", None)
        elif operation == "AddPV":
            volume = decode(first, "v1", "PersistentVolume")
            assert isinstance(volume, PersistentVolume)
            self._graph.set_volume(volume.name or "", volume)
        elif operation == "DeletePV":
            self._graph.set_volume(first, None)
        else:
            node = arguments[1] if operation.startswith("Add") else ""
            self._graph.set_node_of(ATTACHMENT, first, node)

    def authorize(self, asked: Json) -> AuthorizerDecision:
        """Returns the decision about a request. Raises NotExpressible."""
        if (asked["group"], asked["resource"]) not in _PLURALS:
            raise NotExpressible(f"no resource {asked['resource']}")
        attributes = Attributes(
            asked["verb"],
            **{key: asked[key] for key in _ASKED},
            fields=tuple(tuple(field.split("=", 1)) for field in asked["fields"] or ()),
        )
        user = User(asked["user"], groups=tuple(asked["groups"] or ()))
        return NodeAuthorizer(self).authorize(user, attributes)  # type: ignore[arg-type] # what it asks of its feed is here


def authorize(objects: Sequence[Json], asked: Json) -> bool:
    """Reports whether roles and bindings allow a request."""
    attributes = Attributes(asked["verb"], path=asked["path"])
    if asked["is_resource"]:
        attributes = Attributes(asked["verb"], **{key: asked[key] for key in _ASKED})
    user = User(asked["user"], groups=tuple(asked["groups"] or ()))
    return RBAC(FakeHub(*map(decode, objects))).authorize(user, attributes).allowed


def approves(request: Json, subresource: str) -> bool:
    """Reports whether a request for a certificate is approved if all users may create only this
    subresource of requests.
    """
    rule = PolicyRule(
        verbs=["create"],
        api_groups=["certificates.k8s.io"],
        resources=[f"certificatesigningrequests/{subresource}"],
    )
    role = ClusterRole(metadata=ObjectMeta(name="approved"), rules=[rule])
    subject = Subject(kind="User", name=request["spec"].get("username", ""))
    binding = ClusterRoleBinding(
        metadata=ObjectMeta(name="approved"),
        role_ref=RoleRef(kind="ClusterRole", name="approved"),
        subjects=[subject],
    )
    csr = decode(request)
    world = World(*map(_as_stored, (role, binding, csr)))
    return bool(CSRApprovingController().reconcile(csr.key, world.view()).steps)


class _Answer:
    """An authorizer that gives one answer."""

    def __init__(self, allowed: bool) -> None:
        self._allowed = allowed

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        return AuthorizerDecision(self._allowed, "")


_CACHED = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "pvs": ("v1", "PersistentVolume"),
    "csidrivers": ("storage.k8s.io/v1", "CSIDriver"),
}


def restrict_node(case: Case, *, authorized: bool) -> str:
    """Returns why NodeRestriction forbids a write, "" if it does not.

    `authorized` is what the authorizer answers whom the plugin asks. Raises NotExpressible.
    """
    resource = _PLURALS.get((case["rgroup"], case["resource"]))
    if resource is None:
        raise NotExpressible(f"no resource {case['resource']}")
    cached: dict[tuple[type[KubeObject], str], KubeObject] = {}
    for field, (version, kind) in _CACHED.items():
        for given in case.get(field) or ():
            obj = decode(given, version, kind)
            cached[type(obj), obj.key] = obj
    write = _node_write(case, resource)
    user = User(case["user"], groups=tuple(case["groups"] or ()))
    try:
        restriction = NodeRestriction(lambda model, key: cached.get((model, key)))
        restriction.check(Caller(user, _Answer(authorized)), write)  # type: ignore[arg-type] # it only authorizes
    except errors.ApiError as error:
        return str(error)
    except AssertionError as error:
        raise NotExpressible("an object of another kind, or none") from error
    return ""


def _node_write(case: Case, resource: Resource) -> NodeWrite:
    """Returns the write that a case describes. Raises NotExpressible."""
    new, part = case["new"], case["sub"]
    named = ((new or {}).get("metadata") or {}).get("name", "")
    name = case["name"] or ("" if part == "token" else named)
    obj = token = None
    if part == "token" and new:
        bound = new["spec"].get("boundObjectRef") or {}
        token = WantedToken(
            api_version=bound.get("apiVersion", ""),
            kind=bound.get("kind", ""),
            name=bound.get("name", ""),
            uid=bound.get("uid", ""),
            audiences=tuple(new["spec"].get("audiences") or ()),
        )
    elif part == "eviction":
        if case["kind"] != "Eviction":
            raise NotExpressible("another kind for the subresource eviction")
    else:
        obj = _decode_any(new)
        if new and obj is None:
            raise NotExpressible("an object that kcm cannot decode")
    old = _decode_any(case["old"])
    operation, namespace = case["op"], case["namespace"]
    return NodeWrite(operation, resource, namespace, name, part, obj, old, token)


def _decode_any(obj: Json) -> KubeObject | None:
    try:
        return codec.decode(json.dumps(obj), BUILT_IN) if obj else None
    except errors.KcmError:
        return None


# --- Values.


def merge(original: Json, patch: Json, model: type[Model]) -> Json:
    """Returns the result of a strategic merge patch. Raises ApiError."""
    return strategic.apply(original, patch, model)


def parse_quantity(text: str) -> Json:
    """Returns what a quantity is, or None if it cannot be parsed."""
    try:
        quantity = Quantity(text)
    except (errors.KcmError, ValueError):
        return None
    return {
        "s": str(quantity),
        "v": quantity.value(),
        "m": quantity.milli_value(),
        "sign": quantity.sign(),
        "up": str(quantity.round_up(0)),
    }


def parse_selector(text: str, labels: list[dict[str, str]]) -> Json:
    """Returns a selector in its usual form, and which of the labels it matches, or None."""
    try:
        selector = Selector.parse(text)
    except errors.KcmError:
        return None
    return {"s": str(selector), "match": [selector.matches(each) for each in labels]}


# --- The persistent volume binder.


@dataclass(frozen=True)
class BinderResult:
    """What a sync of the persistent volume binder leaves: objects, Events, and its error."""

    objects: dict[str, list[Json]]  # by kind
    events: list[str]  # type, reason, message
    error: str


def bind_volumes(key: str, objects: list[Json]) -> BinderResult:
    """Returns the result of a sync for a key, among objects that are there at first."""
    world = World(*(decode(obj) for obj in objects))
    plan = PersistentVolumeBinderController().reconcile(key, world.view())
    world.carry_out(plan)
    left: dict[str, list[Json]] = {"PersistentVolume": [], "PersistentVolumeClaim": []}
    for obj in world.objects.values():
        if type(obj).__name__ in left:
            left[type(obj).__name__].append(to_json(obj))
    events = [f"{event.type} {event.reason} {event.message}" for event in plan.events]
    return BinderResult(left, events, str(plan.error or ""))
