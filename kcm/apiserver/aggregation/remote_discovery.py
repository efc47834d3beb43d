"""Discovery documents of other servers, as far as ours repeats them.

What another server sends may be anything: fields that are unknown or have another type are left
out, and so is a resource without a name.

Source: staging/src/k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go and
ConvertGroupVersionIntoToDiscovery in staging/src/k8s.io/apiserver/pkg/endpoints/installer.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

ACCEPT = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
_NAMESPACED, _CLUSTER = "Namespaced", "Cluster"


def is_aggregated(content_type: str) -> bool:
    """Reports whether a response is aggregated discovery, by its content type."""
    parts = {part.strip() for part in content_type.split(";")}
    return {"g=apidiscovery.k8s.io", "as=APIGroupDiscoveryList"} <= parts and bool(
        parts & {"v=v2", "v=v2beta1"}
    )


def parse_aggregated(document: Any) -> Mapping[tuple[str, str], list[Json]]:
    """Returns the resources of a document by group and version. Raises ValueError."""
    if not isinstance(document, dict) or not isinstance(document.get("items"), list):
        raise ValueError("this is no APIGroupDiscoveryList")
    found: dict[tuple[str, str], list[Json]] = {}
    for group in _objects(document["items"]):
        metadata = group.get("metadata")
        name = _text(metadata, "name") if isinstance(metadata, dict) else ""
        for version in _objects(group.get("versions")):
            resources = [_resource(one) for one in _objects(version.get("resources"))]
            found[name, _text(version, "version")] = [one for one in resources if one]
    return found


def parse_legacy(document: Any, group: str, version: str) -> list[Json]:
    """Returns the resources of an APIResourceList, as aggregated discovery has them.

    Raises ValueError.
    """
    if not isinstance(document, dict) or not isinstance(document.get("resources"), list):
        raise ValueError("this is no APIResourceList")
    found: dict[str, Json] = {}
    for entry in _objects(document["resources"]):
        name, _, sub = _text(entry, "name").partition("/")
        if not name:
            continue
        kind = {
            "group": _text(entry, "group") or group,
            "version": _text(entry, "version") or version,
            "kind": _text(entry, "kind"),
        }
        scope = _NAMESPACED if entry.get("namespaced") is True else _CLUSTER
        kind_entry = found.setdefault(name, {"resource": name, "scope": scope, "verbs": []})
        if sub:
            described = {"subresource": sub, "responseKind": kind, "verbs": _texts(entry, "verbs")}
            kind_entry.setdefault("subresources", []).append(described)
            continue
        kind_entry |= {"responseKind": kind, "verbs": _texts(entry, "verbs")}
        kind_entry["singularResource"] = _text(entry, "singularName")
        kind_entry |= _named(entry)
    return [{"responseKind": _kind(None), "singularResource": ""} | one for one in found.values()]


def _resource(entry: Json) -> Json:
    """Returns the known fields of a resource, none if it has no name."""
    if not (name := _text(entry, "resource")):
        return {}
    resource: Json = {
        "resource": name,
        "responseKind": _kind(entry.get("responseKind")),
        "scope": _NAMESPACED if entry.get("scope") == _NAMESPACED else _CLUSTER,
        "singularResource": _text(entry, "singularResource"),
        "verbs": _texts(entry, "verbs"),
    }
    subresources = [
        {
            "subresource": _text(sub, "subresource"),
            "responseKind": _kind(sub.get("responseKind")),
            "verbs": _texts(sub, "verbs"),
        }
        for sub in _objects(entry.get("subresources"))
        if _text(sub, "subresource")
    ]
    if subresources:
        resource["subresources"] = subresources
    return resource | _named(entry)


def _named(entry: Json) -> Json:
    named = {field: _texts(entry, field) for field in ("shortNames", "categories")}
    return {field: words for field, words in named.items() if words}


def _kind(value: Any) -> Json:
    kind = value if isinstance(value, dict) else {}
    return {field: _text(kind, field) for field in ("group", "version", "kind")}


def _objects(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(entry: Json, field: str) -> str:
    value = entry.get(field)
    return value if isinstance(value, str) else ""


def _texts(entry: Json, field: str) -> list[str]:
    value = entry.get(field)
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
