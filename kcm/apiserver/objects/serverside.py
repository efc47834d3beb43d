"""Server-side apply.

Guarantees: fields that another manager owns change only by force; fields that
the applier no longer names go, unless somebody else owns them; an apply that
changes nothing writes nothing.

Source: sigs.k8s.io/structured-merge-diff/v4/merge/update.go and
staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apimachinery import nesting
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.times import format_time
from kcm.apiserver.refusals import ApplyConflict
from kcm.store.managed_fields.fieldsets import (
    Path,
    Paths,
    Values,
    merged,
    paths,
    shown,
    with_holders,
    without,
)
from kcm.store.managed_fields.managers import BEFORE, Manager, read, written
from kcm.store.merge import LAST_APPLIED

_KUBECTL = "kubectl"  # applies on the client too, under the annotation


@dataclass(frozen=True)
class Application:
    """One apply: by whom, of what."""

    resource: Resource
    config: Mapping[str, Any]
    manager: str
    force: bool
    subresource: str
    now: datetime

    @property
    def owned(self) -> Paths:
        return paths(self.config, self.resource.model, self.subresource)

    def as_manager(self, owned: Paths) -> Manager:
        version, time = self.resource.api_version, format_time(self.now)
        return Manager(self.manager, "Apply", version, time, owned, self.subresource)


def document(body: bytes) -> dict[str, Any]:
    """What is applied, as it was sent. Raises BadRequest."""
    documents = codec.load_yaml_documents(body, "the body")
    if len(documents) != 1:
        raise errors.BadRequest("the body of an apply must be exactly one object")
    nesting.check(json.dumps(documents[0]).encode())
    return documents[0]


def configuration(body: bytes, resource: Resource) -> dict[str, Any]:
    """The object that is applied. Raises BadRequest."""
    found = document(body)
    try:
        codec.decode(found, resource)  # the types are right
    except errors.Invalid as error:
        told = "; ".join(f".{cause.field}: {cause.detail}" for cause in error.causes)
        raise errors.BadRequest(f"failed to create typed patch object: {told}") from None
    if (found.get("metadata") or {}).get("managedFields"):
        raise errors.BadRequest("metadata.managedFields must be nil")
    return found


def created(what: Application) -> KubeObject:
    """The object where there was none."""
    obj = codec.decode(dict(what.config), what.resource)
    return obj.with_metadata(managed_fields=written([what.as_manager(what.owned)]))


def applied(what: Application, old: KubeObject) -> KubeObject:
    """`old` after the apply; `old` itself when nothing changes. Raises: ApplyConflict, Conflict."""
    named = (what.config.get("metadata") or {}).get("resourceVersion")
    if named and named != old.metadata.resource_version:
        raise errors.Conflict.of(what.resource.name, old.name)
    model, live = what.resource.model, codec.to_dict(old)
    mine, others = _managers(what, live, old)
    owned = what.owned
    taken: Paths = frozenset().union(*(other.owned for other in others))
    body = merged(live, what.config, model)
    body = without(body, mine - with_holders(owned | taken), model)
    body = _with_last_applied(what, body)
    new = codec.decode(body, what.resource)
    after = codec.to_dict(new)
    before, now = Values(live, model), Values(after, model)
    fought = frozenset(
        path
        for path in owned & taken
        if not path[-1].startswith("k:") and before.at(path) != now.at(path)
    )
    if not what.force and (refused := fought - _last_applied(what, old)):
        raise ApplyConflict.between(_conflicts(others, refused))
    return _owned(what, old, new, others, fought)


def _owned(
    what: Application,
    old: KubeObject,
    new: KubeObject,
    others: Sequence[Manager],
    fought: Paths,
) -> KubeObject:
    """`new` with its managers; those of `old` where neither fields nor owners changed."""
    before = read(old.metadata.managed_fields)
    managers = [other.owning(other.owned - fought) for other in others]
    managers.append(what.as_manager(what.owned))
    same = {_identity(manager) for manager in managers if manager.owned} == {
        _identity(manager) for manager in before
    }
    metadata = new.metadata.replace(managed_fields=old.metadata.managed_fields)
    if same and new.replace(metadata=metadata) == old:
        return old
    return new.with_metadata(managed_fields=written(managers))


def _identity(manager: Manager) -> tuple[str, str, str, Paths]:
    return manager.name, manager.operation, manager.subresource, manager.owned


def _managers(
    what: Application, live: dict[str, Any], old: KubeObject
) -> tuple[Paths, list[Manager]]:
    """What the applier owned until now, and the others."""
    known = read(old.metadata.managed_fields)
    if not known:
        everything = paths(live, what.resource.model, what.subresource, nodes=True)
        version, time = what.resource.api_version, format_time(what.now)
        return frozenset(), [Manager(BEFORE, "Update", version, time, everything)]
    self = what.as_manager(frozenset()).identity
    mine = [m for m in known if m.identity == self]
    others = [m for m in known if m not in mine]
    return (mine[0].owned if mine else frozenset()), others


def _last_applied(what: Application, old: KubeObject) -> Paths:
    """What kubectl applied on the client, it may take on the server without force."""
    if what.manager != _KUBECTL:
        return frozenset()
    text = old.annotations.get(LAST_APPLIED, "{}")
    try:
        nesting.check(text.encode(errors="replace"))
        config = json.loads(text)
    except (ValueError, errors.BadRequest):
        return frozenset()  # somebody else's
    if not isinstance(config, dict):
        return frozenset()
    annotation: Path = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")
    return paths(config, what.resource.model, what.subresource) | {annotation}


def _with_last_applied(what: Application, body: dict[str, Any]) -> dict[str, Any]:
    """The annotation of applies on the client follows kubectl's applies on the server."""
    metadata = body.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if what.manager != _KUBECTL or what.subresource or LAST_APPLIED not in annotations:
        return body
    own = {k: v for k, v in _annotations(what.config).items() if k != LAST_APPLIED}
    config = dict(what.config)
    config["metadata"] = {**(config.get("metadata") or {}), "annotations": own}
    text = json.dumps(config, separators=(",", ":"), sort_keys=True) + "\n"
    return {**body, "metadata": {**metadata, "annotations": {**annotations, LAST_APPLIED: text}}}


def _annotations(config: Mapping[str, Any]) -> Mapping[str, Any]:
    return (config.get("metadata") or {}).get("annotations") or {}


def _conflicts(others: Sequence[Manager], fought: Paths) -> list[tuple[str, str]]:
    """(with whom, field) of each conflict, in a fixed order."""
    found = [
        (f'"{other.name}" using {other.api_version}', shown(path))
        for other in others
        for path in other.owned & fought
    ]
    return sorted(found)
