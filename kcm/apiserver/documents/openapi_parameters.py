"""The parameters of operations. Most are shared: operations refer to them by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kcm.apiserver.documents.openapi_schemas import Dialect, Schema
from kcm.kinds.descriptions import describe_field

# kubectl looks for these two by their names in an operation itself.
_INLINE = ("dryRun", "fieldValidation")
WRITE = ("dryRun", "fieldManager", "fieldValidation")
LIST = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit",
    "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_PATH = ("name", "namespace", "path")
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "allowWatchBookmarks", "sendInitialEvents", "watch", "orphanDependents", "force",
            "follow", "previous", "timestamps", "insecureSkipTLSVerifyBackend",
            "stdin", "stdout", "stderr", "tty",
        ),
        "boolean",
    ),
    **dict.fromkeys(
        (
            "limit", "timeoutSeconds", "gracePeriodSeconds", "limitBytes", "sinceSeconds",
            "tailLines", "ports",
        ),
        "integer",
    ),
}  # fmt: skip
# Parameters of subresources, besides the name and the namespace.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "log": (
        "container", "follow", "insecureSkipTLSVerifyBackend", "limitBytes", "pretty", "previous",
        "sinceSeconds", "tailLines", "timestamps",
    ),
    "exec": ("command", "container", "stderr", "stdin", "stdout", "tty"),
    "attach": ("container", "stderr", "stdin", "stdout", "tty"),
    "portforward": ("ports",),
    "proxy": ("path",),
}  # fmt: skip


def write_parameters(names: Iterable[str], dialect: Dialect) -> list[Schema]:
    """Returns parameters by their names: most of them as references."""
    return [
        _parameter(name, dialect) if name in _INLINE else {"$ref": dialect.shared + name}
        for name in names
    ]


def shared_parameters(dialect: Dialect) -> dict[str, Any]:
    """Returns the parameters that operations refer to, by their references."""
    options = (name for names in OPTIONS.values() for name in names)
    names = dict.fromkeys([*LIST, *DELETE, *WRITE, *_PATH, *options, "force", "pretty"])
    return {dialect.shared + name: _parameter(name, dialect) for name in names}


def _parameter(name: str, dialect: Dialect) -> Schema:
    in_path = name in _PATH
    parameter: Schema = {
        "name": name,
        "in": "path" if in_path else "query",
        "description": describe_field("Parameter", name),
    }
    if in_path:
        parameter["required"] = True
    schema = {"type": _TYPES.get(name, "string")}
    return parameter | (schema if dialect.body_parameter else {"schema": schema})
