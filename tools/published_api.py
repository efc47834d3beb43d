"""Writes tables of what upstream's API server serves, from its documents.

    python tools/published_api.py fields swagger.json > tests/unit/api/published_fields.txt
    python tools/published_api.py kinds aggregated_v2.json > tests/unit/api/published_kinds.txt
    python tools/published_api.py roles cluster-roles.yaml > tests/unit/api/published_roles.txt
    python tools/published_api.py roles controller-roles.yaml >> tests/unit/api/published_roles.txt

The first document is api/openapi-spec/swagger.json of the release that kcm follows. Names and types
are read, descriptions are not. API versions that are off by default are left out, apart from those
in `_ALSO`; so are the structs of lists.

    package io.k8s.api.core.v1
    ContainerPort
      containerPort int32
      hostIP string
    PodSpec
      containers []Container map=name merge=name

Marks say how patches treat a field: `map=` has the keys of a list, `merge=` the key by which
strategic merge patches merge it; `set` and `atomic` are the other kinds of list, and of map.

The second document is the aggregated discovery of /apis. A line is a resource or subresource:

    apps/v1 deployments Deployment deployment Namespaced short=deploy categories=all create,...
    apps/v1 deployments/status Deployment get,patch,update

The last two are in plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata. A line is a
rule: role, verbs, groups, resources and names of objects, or role, verbs, `-` and paths.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]

# API versions that upstream has off by default and kcm serves.
_OPENSHIFT = re.compile("openshift|service-ca-")
_ALSO = ("certificates.v1beta1.ClusterTrustBundle", "storagemigration.v1beta1.")
_SPECIAL = {
    "Quantity": "quantity", "IntOrString": "intstr", "Time": "time", "MicroTime": "microtime",
}  # fmt: skip
_JSON = frozenset({"RawExtension", "FieldsV1", "JSON", "JSONSchemaPropsOrArray"})


def read_document(path: Path) -> dict[str, Any]:
    """Returns a document, which may be compressed."""
    raw = path.read_bytes()
    if path.suffix == ".yaml":
        return dict(yaml.safe_load(raw))
    document: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return document


def is_listed(name: str, schema: Schema) -> bool:
    """Reports whether a definition belongs in the table."""
    is_list = {"items", "metadata"} <= schema.get("properties", {}).keys() and name.endswith("List")
    stable = not any(word in name for word in ("alpha", "beta"))
    return "properties" in schema and not is_list and (stable or any(p in name for p in _ALSO))


def describe_type(schema: Schema) -> str:
    """Returns the word for the type of a field."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition(".")[2]
        return "any" if name in _JSON else _SPECIAL.get(name, name)
    match schema.get("type"):
        case "array":
            return "[]" + describe_type(schema["items"])
        case "object" if "additionalProperties" in schema:
            return "map:" + describe_type(schema["additionalProperties"])
        case "integer" | "number":
            return str(schema.get("format", "int64"))
        case str(name):
            return name
    return "any"


def describe_marks(schema: Schema, struct: Schema) -> Iterator[str]:
    """Yields how patches treat a field. `struct` is the definition that the field refers to."""
    if keys := schema.get("x-kubernetes-list-map-keys"):
        yield f"map={','.join(keys)}"
    elif schema.get("x-kubernetes-list-type") == "set":
        yield "set"
    if "atomic" in (schema.get("x-kubernetes-map-type"), struct.get("x-kubernetes-map-type")):
        yield "atomic"
    strategy = schema.get("x-kubernetes-patch-strategy", "").split(",")
    if "merge" in strategy:
        yield f"merge={schema.get('x-kubernetes-patch-merge-key', '')}"
    if "retainKeys" in strategy:
        yield "retainKeys"


def table_lines(definitions: dict[str, Schema]) -> Iterator[str]:
    """Yields the lines of the table."""
    listed = sorted(name for name, schema in definitions.items() if is_listed(name, schema))
    for package, names in groupby(listed, lambda name: name.rpartition(".")[0]):
        yield f"package {package}"
        for name in names:
            yield name.rpartition(".")[2]
            for field, schema in sorted(definitions[name]["properties"].items()):
                struct = definitions.get(schema.get("$ref", "").rpartition("/")[2], {})
                yield (
                    " ".join(("", "", field))
                    + " "
                    + describe_type(schema)
                    + "".join(f" {mark}" for mark in describe_marks(schema, struct))
                )


# As `_ALSO`, by version and plural.
_ALSO_SERVED = frozenset(
    {("v1beta1", "clustertrustbundles"), ("v1beta1", "storageversionmigrations")}
)


def resource_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yields a line for each resource and subresource of an aggregated discovery document."""
    for group in document["items"]:
        for version in group["versions"]:
            where = f"{group['metadata'].get('name', '')}/{version['version']}".lstrip("/")
            for resource in version["resources"]:
                yield from _resource_lines(where, resource)


def _resource_lines(where: str, resource: dict[str, Any]) -> Iterator[str]:
    name = resource["resource"]
    words = [where, name, resource["responseKind"]["kind"], resource["singularResource"]]
    words.append(resource["scope"])
    for mark, field in (("short", "shortNames"), ("categories", "categories")):
        if resource.get(field):
            words.append(f"{mark}={','.join(resource[field])}")
    yield " ".join([*words, ",".join(sorted(resource["verbs"]))])
    for part in resource.get("subresources", ()):
        verbs = ",".join(sorted(part["verbs"]))
        yield f"{where} {name}/{part['subresource']} {part['responseKind']['kind']} {verbs}"


def is_served(line: str) -> bool:
    """Reports whether a resource is one of a version that is on by default, or of `_ALSO`."""
    where, name, *_ = line.split()
    version = where.rpartition("/")[2]
    return "a" not in version or (version, name.partition("/")[0]) in _ALSO_SERVED


def rule_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yields a line for each rule of the roles in a list, but for those that only OpenShift has."""
    for role in document["items"]:
        name = role["metadata"]["name"]
        for rule in role.get("rules") or () if not _OPENSHIFT.search(name) else ():
            yield f"{name} {_words(rule)}"


def _words(rule: dict[str, Any]) -> str:
    verbs = ",".join(rule["verbs"])
    if "nonResourceURLs" in rule:
        return f"{verbs} - {','.join(rule['nonResourceURLs'])}"
    groups = ",".join(group or "core" for group in rule["apiGroups"])
    names = ",".join(rule.get("resourceNames", ()))
    return f"{verbs} {groups} {','.join(rule['resources'])} {names}".rstrip()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    _, what, path = sys.argv
    read = read_document(Path(path))
    if what == "fields":
        lines = table_lines(read["definitions"])
    elif what == "kinds":
        lines = iter(sorted(filter(is_served, resource_lines(read))))
    else:
        lines = rule_lines(read)
    sys.stdout.writelines(f"{line}\n" for line in lines)
