"""Builds resources from definitions: one for each version, all stored under one name."""

from __future__ import annotations

import hashlib
from typing import Any

from kcm.api import codec
from kcm.api.apiextensions_v1 import (
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionVersion,
)
from kcm.api.custom.kinds import CustomObject, CustomResource, CustomVersion, DefinitionSource
from kcm.api.custom.structural_schema import parse
from kcm.api.scheme import Conversion, Resource, ScalePaths
from kcm.apiextensions import builtin, objects
from kcm.apiextensions.conditions import is_true
from kcm.apiextensions.conversion import ConversionByWebhook, KindVersions
from kcm.apimachinery.meta_v1 import KubeObject

WEBHOOK = "Webhook"  # the strategy by which a server converts objects


class VersionConversion(Conversion):
    """Converts by the strategy None: versions differ in apiVersion, and have their own defaults."""

    def __init__(self, api_version: str, stored: str) -> None:
        self._api_version = api_version
        self._stored = stored

    def from_stored(self, raw: bytes, resource: Resource) -> KubeObject:
        obj = codec.read(raw, resource)
        assert isinstance(obj, CustomObject)  # the resource is of a custom kind
        obj.api_version = self._api_version
        return objects.complete(obj)

    def to_stored(self, obj: KubeObject) -> bytes:
        return codec.encode(obj.replace(api_version=self._stored))


def is_served(definition: CustomResourceDefinition) -> bool:
    """Reports whether the definition's kind is served: it is established and hides no built-in
    kind.
    """
    return is_true(definition, "Established") and not builtin.shadows(definition)


def resources_of(definition: CustomResourceDefinition) -> list[Resource]:
    """Returns the resources of a definition, that of the storage version first.

    Versions that are not served are included.
    """
    versions = sorted(definition.spec.versions, key=lambda version: not version.storage)
    stored = f"{definition.spec.group}/{versions[0].name}"
    source = source_of(definition)
    conversion = definition.spec.conversion
    if conversion is None or conversion.strategy != WEBHOOK or conversion.webhook is None:
        return [
            _resource(
                definition, one, VersionConversion(api_version_of(definition, one), stored), source
            )
            for one in versions
        ]
    may_be_stored = (versions[0].name, *(definition.status.stored_versions or ()))
    family = KindVersions(definition.name, conversion.webhook, frozenset(may_be_stored))
    for one in versions:
        resource = _resource(definition, one, ConversionByWebhook(family), source)
        family.by_api_version[resource.api_version] = resource
    return list(family.by_api_version.values())


def source_of(definition: CustomResourceDefinition) -> DefinitionSource:
    """Returns a digest of all of a definition that its resources depend on."""
    accepted = definition.status.accepted_names
    texts = codec.encode(definition.spec) + (codec.encode(accepted) if accepted else b"")
    return DefinitionSource(hashlib.sha256(texts).digest(), len(texts))


def api_version_of(
    definition: CustomResourceDefinition, version: CustomResourceDefinitionVersion
) -> str:
    return f"{definition.spec.group}/{version.name}"


def _resource(
    definition: CustomResourceDefinition,
    version: CustomResourceDefinitionVersion,
    conversion: Conversion,
    source: DefinitionSource,
) -> CustomResource:
    spec, accepted = definition.spec, definition.status.accepted_names
    names = accepted or CustomResourceDefinitionNames()
    api_version = api_version_of(definition, version)
    kind = spec.names.kind
    custom = _custom(definition, version)
    subresources = version.subresources or {}
    resource = CustomResource(
        group=spec.group,
        version=version.name,
        kind=kind,
        plural=spec.names.plural,
        singular=names.singular or spec.names.singular or kind.lower(),
        namespaced=spec.scope == "Namespaced",
        model=_model(kind, api_version, custom),
        short_names=tuple(names.short_names or ()),
        has_status=subresources.get("status") is not None,
        categories=tuple(names.categories or ()),
        scale=_scale(subresources.get("scale")),
        list_kind=names.list_kind or spec.names.list_kind or f"{kind}List",
        conversion=conversion,
        custom=custom,
        source=source,
        served=version.served,
    )
    resource.model.resource = resource  # type: ignore[assignment] # declared as a descriptor
    return resource


def _custom(
    definition: CustomResourceDefinition, version: CustomResourceDefinitionVersion
) -> CustomVersion:
    spec = definition.spec
    warning = ""
    if version.deprecated:
        warning = version.deprecation_warning or (
            f"{spec.group}/{version.name} {spec.names.kind} is deprecated"
        )
    raw = (version.schema_ or {}).get("openAPIV3Schema")
    return CustomVersion(
        name=version.name,
        schema=parse(raw if isinstance(raw, dict) else {}),
        columns=tuple(version.additional_printer_columns or ()),
        selectable=tuple(field.json_path for field in version.selectable_fields or ()),
        deprecation=warning,
    )


def _scale(paths: Any) -> ScalePaths | None:
    if not isinstance(paths, dict):
        return None
    return ScalePaths(
        str(paths.get("specReplicasPath") or ""),
        str(paths.get("statusReplicasPath") or ""),
        str(paths.get("labelSelectorPath") or ""),
    )


def _model(kind: str, api_version: str, custom: CustomVersion) -> type[CustomObject]:
    body: dict[str, Any] = {
        "__annotations__": {"api_version": str, "kind": str},
        "__module__": __name__,
        "__doc__": custom.schema.raw.get("description") or f"A custom object of kind {kind}.",
        "kubernetes_generated": True,
        "api_version": api_version,
        "kind": kind,
        "custom": custom,
    }
    return type(kind, (CustomObject,), body)
