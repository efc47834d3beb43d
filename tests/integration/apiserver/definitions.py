"""CronTabs, the custom kind of these tests, each in a group of its own."""

from __future__ import annotations

from typing import Any

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["cronSpec"],
    "description": "What is to run, and when.",
    "properties": {
        "cronSpec": {"type": "string", "pattern": r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$"},
        "image": {"type": "string", "default": "busybox", "maxLength": 1000},
        "replicas": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
        "selector": {"type": "string", "maxLength": 1000},
        "port": {"x-kubernetes-int-or-string": True},
        "note": {"type": "string", "nullable": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "env": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
            },
        },
    },
    "x-kubernetes-validations": [
        {
            "rule": "self.replicas <= 5 || self.image != 'busybox'",
            "message": "busybox does not scale",
        },
        {
            "rule": "!has(oldSelf.selector) || has(self.selector) "
            "&& self.selector == oldSelf.selector",
            "message": "the selector stays",
            "fieldPath": ".selector",
        },
    ],
}
STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "phase": {"type": "string", "enum": ["Good", "Bad"]},
    },
}
SUBRESOURCES: dict[str, Any] = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}
COLUMNS: list[dict[str, Any]] = [
    {"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec"},
    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def version(name: str, *, storage: bool = False, served: bool = True) -> dict[str, Any]:
    """Returns a version of CronTab for a definition."""
    schema = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": SUBRESOURCES,
        "additionalPrinterColumns": COLUMNS,
    }


def crontabs(group: str, **changes: Any) -> dict[str, Any]:
    """Returns the definition of CronTabs in a group, by default with two versions."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"crontabs.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": "crontabs",
                "singular": "crontab",
                "kind": "CronTab",
                "listKind": "CronTabList",
                "shortNames": [f"ct{group.partition('.')[0]}"],
                "categories": ["all"],
            },
            "versions": [version("v1", storage=True), version("v1beta1")],
            **changes,
        },
    }


def crontab(group: str, name: str, version: str = "v1", **spec: Any) -> dict[str, Any]:
    """Returns a CronTab."""
    return {
        "apiVersion": f"{group}/{version}",
        "kind": "CronTab",
        "metadata": {"name": name},
        "spec": {"cronSpec": "* * * * */5", **spec},
    }
