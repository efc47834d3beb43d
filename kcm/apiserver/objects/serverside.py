"""Server-side apply.

Fields that another field manager owns change only by force. Fields that the applier no longer names
are removed, unless another manager owns them. An apply that changes nothing writes nothing.

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
from kcm.apimachinery.meta_v1 import KubeObject, format_time
from kcm.apiserver.http.bodies import reading, typed
from kcm.apiserver.http_errors import ApplyConflict, WronglyTyped
from kcm.store.managed_fields.fieldsets import (
    Path,
    Paths,
    Values,
    add_holders,
    format_path,
    merge_values,
    paths,
    remove_paths,
)
from kcm.store.managed_fields.managers import (
    BEFORE,
    ManagedFieldsEntry,
    encode_managers,
    parse_managers,
)
from kcm.store.merge import LAST_APPLIED

_KUBECTL = "kubectl"  # kubectl also applies on the client, and then writes an annotation


@dataclass(frozen=True)
class Application:
    """One server-side apply: the configuration, and the field manager that applies it."""

    resource: Resource
    config: Mapping[str, Any]
    manager: str
    force: bool
    subresource: str
    now: datetime

    @property
    def owned(self) -> Paths:
        """Returns the paths of the fields that the configuration sets."""
        return paths(self.config, self.resource.model, self.subresource)

    def as_manager(self, owned: Paths) -> ManagedFieldsEntry:
        """Returns the applier's managed-fields entry, with these paths."""
        version, time = self.resource.api_version, format_time(self.now)
        return ManagedFieldsEntry(self.manager, "Apply", version, time, owned, self.subresource)


def document(body: bytes, repeated: list[str] | None = None) -> dict[str, Any]:
    """Returns the applied configuration as it was sent; `repeated` is as for
    `load_yaml_documents`. Raises BadRequest.
    """
    documents = codec.load_yaml_documents(body, "the body", repeated=repeated)
    if len(documents) != 1:
        raise errors.BadRequest("the body of an apply must be exactly one object")
    nesting.check(json.dumps(documents[0]).encode())
    return documents[0]


def configuration(
    body: bytes, resource: Resource, repeated: list[str] | None = None
) -> dict[str, Any]:
    """Returns the applied configuration, after a check of its types.

    `repeated` is as for `load_yaml_documents`. Raises BadRequest, and WronglyTyped for a field that
    the kind has not or a value of another type.
    """
    parsed = document(body, repeated)
    if faults := typed.describe_faults(parsed, resource.model):
        raise WronglyTyped(f"failed to create typed patch object ({_identify(parsed)}): {faults}")
    try:
        codec.decode(parsed, resource)  # numbers are in range, quantities and times can be read
    except errors.Invalid as error:
        causes = "; ".join(f".{cause.field}: {cause.detail}" for cause in error.causes)
        raise errors.BadRequest(f"failed to create typed patch object: {causes}") from None
    if (parsed.get("metadata") or {}).get("managedFields"):
        raise errors.BadRequest("metadata.managedFields must be nil")
    return parsed


def _identify(config: Mapping[str, Any]) -> str:
    """Returns namespace, name, version and kind as upstream prints them."""
    metadata = config.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    group, _, version = str(config.get("apiVersion", "")).rpartition("/")
    return f"{place}; {group}/{version}, Kind={config.get('kind', '')}"


def create_applied(application: Application) -> KubeObject:
    """Returns the object that the apply creates."""
    obj = codec.decode(dict(application.config), application.resource)
    return obj.with_metadata(
        managed_fields=encode_managers([application.as_manager(application.owned)])
    )


def apply_to(application: Application, old: KubeObject) -> KubeObject:
    """Returns `old` after the apply, or `old` itself if nothing changes.

    Raises ApplyConflict and Conflict.
    """
    named = (application.config.get("metadata") or {}).get("resourceVersion")
    if reading.names_other_version(named, old):
        raise errors.Conflict.of(application.resource.name, old.name)
    model, live = application.resource.model, codec.to_dict(old)
    mine, others = _managers(application, live, old)
    owned = application.owned
    taken: Paths = frozenset().union(*(other.owned for other in others))
    body = merge_values(live, application.config, model)
    body = remove_paths(body, mine - add_holders(owned | taken), model)
    body = _with_last_applied(application, body)
    new = codec.decode(body, application.resource)
    after = codec.to_dict(new)
    before, now = Values(live, model), Values(after, model)
    fought = frozenset(
        path
        for path in owned & taken
        if not path[-1].startswith("k:") and before.at(path) != now.at(path)
    )
    if not application.force and (refused := fought - _last_applied(application, old)):
        raise ApplyConflict.between(_conflicts(others, refused))
    return _with_managers(application, old, new, others, fought)


def _with_managers(
    application: Application,
    old: KubeObject,
    new: KubeObject,
    others: Sequence[ManagedFieldsEntry],
    fought: Paths,
) -> KubeObject:
    """Returns `new` with its managed fields, or `old` if neither fields nor owners have changed.

    `fought` are the paths that the applier takes from the `others`.
    """
    before = parse_managers(old.metadata.managed_fields)
    managers = [other.with_owned(other.owned - fought) for other in others]
    managers.append(application.as_manager(application.owned))
    same = {_identity(manager) for manager in managers if manager.owned} == {
        _identity(manager) for manager in before
    }
    metadata = new.metadata.replace(managed_fields=old.metadata.managed_fields)
    if same and new.replace(metadata=metadata) == old:
        return old
    return new.with_metadata(managed_fields=encode_managers(managers))


def _identity(manager: ManagedFieldsEntry) -> tuple[str, str, str, Paths]:
    return manager.name, manager.operation, manager.subresource, manager.owned


def _managers(
    application: Application, live: dict[str, Any], old: KubeObject
) -> tuple[Paths, list[ManagedFieldsEntry]]:
    """Returns the paths that the applier has owned so far, and the other managers."""
    managers = parse_managers(old.metadata.managed_fields)
    if not managers:
        everything = paths(live, application.resource.model, application.subresource, nodes=True)
        version, time = application.resource.api_version, format_time(application.now)
        return frozenset(), [ManagedFieldsEntry(BEFORE, "Update", version, time, everything)]
    self = application.as_manager(frozenset()).identity
    mine = [m for m in managers if m.identity == self]
    others = [m for m in managers if m not in mine]
    return (mine[0].owned if mine else frozenset()), others


def _last_applied(application: Application, old: KubeObject) -> Paths:
    """Returns the paths that kubectl applied on the client, which it may take without force."""
    if application.manager != _KUBECTL:
        return frozenset()
    text = old.annotations.get(LAST_APPLIED, "{}")
    try:
        nesting.check(text.encode(errors="replace"))
        config = json.loads(text)
    except (ValueError, errors.BadRequest):
        return frozenset()  # not written by kubectl
    if not isinstance(config, dict):
        return frozenset()
    annotation: Path = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")
    return paths(config, application.resource.model, application.subresource) | {annotation}


def _with_last_applied(application: Application, body: dict[str, Any]) -> dict[str, Any]:
    """Returns the body with kubectl's annotation of the last applied configuration updated."""
    metadata = body.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if (
        application.manager != _KUBECTL
        or application.subresource
        or LAST_APPLIED not in annotations
    ):
        return body
    own = {k: v for k, v in _annotations(application.config).items() if k != LAST_APPLIED}
    config = dict(application.config)
    config["metadata"] = {**(config.get("metadata") or {}), "annotations": own}
    text = json.dumps(config, separators=(",", ":"), sort_keys=True) + "\n"
    return {**body, "metadata": {**metadata, "annotations": {**annotations, LAST_APPLIED: text}}}


def _annotations(config: Mapping[str, Any]) -> Mapping[str, Any]:
    return (config.get("metadata") or {}).get("annotations") or {}


def _conflicts(others: Sequence[ManagedFieldsEntry], fought: Paths) -> list[tuple[str, str]]:
    """Returns the field manager and the field of each conflict, sorted."""
    pairs = [
        (_describe(other), format_path(path)) for other in others for path in other.owned & fought
    ]
    return sorted(pairs)


def _describe(manager: ManagedFieldsEntry) -> str:
    """Returns the field manager as conflicts name it."""
    words = [f'"{manager.name}"']
    if manager.subresource:
        words.append(f'with subresource "{manager.subresource}"')
    if manager.operation == "Update":
        words.append(f"using {manager.api_version}")
    return " ".join(words)
