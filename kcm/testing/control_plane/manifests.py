"""Manifests as tests have them: text, files, folders, lists, and the models of client libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from kcm.api.scheme import BUILT_IN

Json = dict[str, Any]

_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_VERSION = re.compile(r"V\d+((alpha|beta)\d+)?")  # before the kind, in the names of models


def read_manifests(manifest: Any) -> Iterator[Json]:
    """Yields the objects of a manifest, those of lists one by one.

    It is an object, YAML text of any number, the path of a file or of a folder, or several of
    these. Objects are mappings, or models of pydantic, `kubernetes`, lightkube or kr8s. Raises
    ValueError and OSError.
    """
    if isinstance(manifest, Mapping):
        yield from _items(_named(manifest, manifest))
    elif isinstance(manifest, Path) or (isinstance(manifest, str) and _is_path(manifest)):
        yield from _read_path(Path(manifest))
    elif isinstance(manifest, str):
        for document in yaml.safe_load_all(manifest):
            if document is not None and not isinstance(document, Mapping):
                raise ValueError(f"a manifest has text instead of an object: {document}")
            if document:
                yield from _items(document)
    elif isinstance(manifest, Sequence) and not isinstance(manifest, bytes):
        for one in manifest:
            yield from read_manifests(one)
    else:
        dumped = _dump(manifest)
        if not isinstance(dumped, Mapping):
            raise _no_manifest(manifest)
        yield from _items(_named(manifest, dumped))


def _is_path(text: str) -> bool:
    return not ("\n" in text or ": " in text or text.lstrip().startswith(("{", "[")) or not text)


def _read_path(path: Path) -> Iterator[Json]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
        if not files:
            raise ValueError(f"the folder {path} has no file that ends with .yaml, .yml or .json")
    else:
        files = [path]
    for file in files:
        try:
            yield from read_manifests(f"{file.read_text()}\n")
        except (ValueError, yaml.YAMLError) as error:
            raise ValueError(f"{file}: {error}") from error


def _items(document: Mapping[str, Any]) -> Iterator[Json]:
    """Yields an object, or the items of a list, which may leave out their kind."""
    kind, items = str(document.get("kind", "")), document.get("items")
    if not (kind.endswith("List") and isinstance(items, list)):
        yield dict(document)
        return
    of_all = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for item in items:
        yield from _items({**of_all, **item} if kind != "List" else item)


def _dump(model: Any) -> Any:
    """Returns a model as JSON. Raises ValueError for what is none."""
    if isinstance(model, Mapping):
        return {str(key): _dump(value) for key, value in model.items()}
    if isinstance(model, list | tuple):
        return [_dump(one) for one in model]
    if isinstance(model, date):  # a datetime, too
        return model.isoformat()
    if model is None or isinstance(model, str | int | float):
        return model
    if hasattr(model, "attribute_map"):  # of kubernetes and kubernetes_asyncio
        values = ((key, getattr(model, name)) for name, key in model.attribute_map.items())
        return {key: _dump(value) for key, value in values if value is not None}
    if hasattr(model, "model_dump"):  # of pydantic
        return model.model_dump(mode="json", by_alias=True, exclude_none=True)
    if hasattr(model, "to_dict"):  # of lightkube and kr8s
        return _dump(model.to_dict())
    raise _no_manifest(model)


def _no_manifest(value: Any) -> ValueError:
    return ValueError(
        f"{type(value).__name__} is no manifest: give a mapping, YAML text, a path, a model of a "
        "client library, or a list of these"
    )


def _named(model: Any, dumped: Mapping[str, Any]) -> Json:
    """Returns an object with the kind and apiVersion that only its class may tell."""
    named = dict(dumped)
    if named.get("kind") and named.get("apiVersion"):
        return named
    if info := getattr(model, "_api_info", None):  # of lightkube
        own = info.resource
        version = f"{own.group}/{own.version}" if own.group else own.version
        return {**named, "apiVersion": version, "kind": own.kind}
    if hasattr(model, "attribute_map"):
        resource = BUILT_IN.lookup(_VERSION.sub("", type(model).__name__, count=1))
        return {**named, "apiVersion": resource.api_version, "kind": resource.kind}
    return named
