"""Backup and restore: all objects as JSON lines, independent of Redis' own files.

The first line describes the backup, each further line is an object as stored. Guarantees: a
restored object keeps its name, uid, creation time, status and deletion timestamp. Its
resourceVersion is new, so watches and caches from before have to list again. Does not guarantee a
snapshot: an object that is written while the backup runs may be missing or in its earlier state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from kcm import errors
from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.core_v1 import Namespace
from kcm.api.scheme import Scheme
from kcm.apiextensions.registration import register
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.redisio.connection import FORMAT_VERSION
from kcm.store.namespaces import SYSTEM
from kcm.store.store import Store
from kcm.store.writes.items import WriteItem, WriteStatus

_BATCH = 500  # objects that are restored in one batch

Progress = Callable[[int], None]


def backup(store: Store, path: Path, now: datetime, progress: Progress = lambda _: None) -> int:
    """Writes every object to `path`, which appears only when it is complete. Returns their number.

    `progress` is called with the number of objects so far. Raises: StoreUnavailable, OSError.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8") as out:
            count = _write(store, out, now, progress)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _write(store: Store, out: TextIO, now: datetime, progress: Progress) -> int:
    version = store.resource_version()
    header = {"kcm": "backup", "format": FORMAT_VERSION, "resourceVersion": str(version)}
    out.write(json.dumps({**header, "time": now.isoformat()}) + "\n")
    count = 0
    for resource in store.scheme.resources():
        for page in store.raw_pages(resource):
            objects = store.readable_page(resource, page)
            raws = dict(page)
            for obj in objects:  # strings in JSON have no raw line ends
                out.write(raws[obj.key].replace(b"\n", b" ").decode() + "\n")
            count += len(objects)
            progress(count)
    return count


def restore(store: Store, path: Path, progress: Progress = lambda _: None) -> int:
    """Creates every object of the backup at `path`. Returns their number.

    `progress` is called with the number of objects so far. Raises: Conflict when the store is not
    empty; BadRequest, with the line number, for a file that is not a backup or has lines that are
    not objects, before anything is written.
    """
    for _ in _objects(path, Scheme()):
        pass  # the whole file is checked before the first write
    held = {resource.name: store.count(resource) for resource in store.scheme.resources()}
    held["namespaces"] -= _present_system_namespaces(store)
    present = ", ".join(f"{count} {name}" for name, count in held.items() if count)
    if present:
        raise errors.Conflict(f"the store is not empty ({present}): restore into an empty store")
    count = 0
    batch: list[WriteItem] = []
    for item in _objects(path, store.scheme):
        batch.append(item)
        if len(batch) == _BATCH:
            count += _create(store, batch)
            progress(count)
            batch = []
    return count + _create(store, batch)


def _create(store: Store, batch: list[WriteItem]) -> int:
    """Creates a batch of objects, and returns their number.

    A system namespace that exists already is no error.
    """
    for result in store.write(batch):
        if result.status is not WriteStatus.EXISTS or not _is_system_namespace(result.item.obj):
            result.get_stored()
    return len(batch)


def _is_system_namespace(obj: KubeObject) -> bool:
    """Reports whether the object is a system namespace, which may exist before the restore."""
    return isinstance(obj, Namespace) and obj.name in SYSTEM


def _present_system_namespaces(store: Store) -> int:
    resource = Namespace.resource
    return sum(
        namespace is not None for namespace in store.get_all([(resource, n) for n in SYSTEM])
    )


def _objects(path: Path, scheme: Scheme) -> Iterator[WriteItem]:
    """Yields the items that create the objects of a backup, and registers its custom kinds.

    Raises: BadRequest, with the line number.
    """
    with path.open(encoding="utf-8") as lines:
        _check_header(path, next(lines, ""))
        for number, line in enumerate(lines, 2):
            try:
                obj = codec.decode(line, scheme)
            except errors.ApiError as error:
                raise errors.BadRequest(f"{path}, line {number}: {error}") from error
            if isinstance(obj, CustomResourceDefinition):
                register(scheme, obj)  # objects of its kind follow
            resource = obj.resource
            yield WriteItem(
                "create", resource, obj.with_metadata(resource_version=None), anywhere=True
            )


def _check_header(path: Path, line: str) -> None:
    """Raises BadRequest for a file that is not a backup, or has a newer format."""
    try:
        header: Any = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("kcm") != "backup":
        raise errors.BadRequest(f"{path} is not a backup of kcm")
    if header.get("format", 0) > FORMAT_VERSION:
        raise errors.BadRequest(
            f"{path} has format {header['format']}, newer than format {FORMAT_VERSION} of this kcm"
        )
