"""Objects as text: the output formats yaml, json and name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

from kcm.api import codec
from kcm.apimachinery.meta_v1 import KubeObject

FORMATS = ("wide", "yaml", "json", "name")


def qualified_name(obj: KubeObject) -> str:
    """Returns a name such as `replicaset.apps/web`, as kubectl prints it."""
    return f"{qualified_kind(obj)}/{obj.name}"


def qualified_kind(obj: KubeObject) -> str:
    """Returns the singular name of the kind with its group: `replicaset.apps` or `pod`."""
    resource = obj.resource
    return f"{resource.singular}.{resource.group}" if resource.group else resource.singular


def render(objects: Sequence[KubeObject], form: str, *, single: bool) -> str:
    """Returns the objects as text. With `single`, it is the only object, otherwise a List."""
    if form == "name":
        return "\n".join(qualified_name(obj) for obj in objects)
    if single:
        return dump(codec.to_dict(objects[0]), form)
    body = {
        "apiVersion": "v1",
        "items": [codec.to_dict(obj) for obj in objects],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }
    return dump(body, form)


def dump(body: Any, form: str) -> str:
    """Returns JSON values as YAML or JSON text, without a newline at the end."""
    if form == "json":
        return json.dumps(body, indent=4, ensure_ascii=False)
    text: str = yaml.safe_dump(body, sort_keys=True, allow_unicode=True, width=4096)
    return text.rstrip("\n")
