"""Reads objects: one, a page, or all with an index entry.

Guarantees: the resourceVersion of a list is the counter from before its first page was read. So a
watch from there returns all changes that the list may or may not have. The pages of a list are of
one epoch (design 0003): none comes from a server that was the master before.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apiextensions.field_selectors import FieldSelector
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import Kind, Kind_co
from kcm.redisio import RedisIO, greenlets
from kcm.store import damage

ALL_KNOWN = "*"  # the field of the last resourceVersions that is missing if they were lost
PAGE = 500  # objects fetched in one round trip


@dataclass(frozen=True)
class ObjectList(Generic[Kind_co]):
    """One page of a list. `continue_` is the token for the next page, "" on the last one."""

    items: Sequence[Kind_co]
    resource_version: int
    continue_: str = ""


@dataclass(frozen=True)
class FullList(Generic[Kind_co]):
    """All objects of a kind. Iterate them only once, since they may be read page by page
    meanwhile.
    """

    objects: Iterable[Kind_co]
    resource_version: int  # from before the first page


class StoreReader:
    """Reads objects from Redis. Thread-safe."""

    # Whether an object may be changed of which only metadata is at hand.
    takes_partial_objects = False

    def __init__(self, io: RedisIO) -> None:
        self._io = io

    @property
    def data_id(self) -> str:
        """The data id: it changes when this process notices that the store was emptied."""
        return self._io.data_id

    def get(self, resource: Resource[Kind], key: str) -> Kind:
        """Returns the object under `key`. Raises: NotFound, Damaged, StoreUnavailable."""
        raw = self.get_raw(resource, key)
        greenlets.raise_if_many_values(raw)
        try:
            return damage.decode_object(resource, key, raw)
        except errors.Damaged as error:
            damage.record_damage(self._io, [error], [key])
            raise

    def find(self, resource: Resource[Kind], key: str) -> Kind | None:
        """Returns the object under `key`, or None if it is missing or cannot be read.

        Raises: StoreUnavailable.
        """
        return self.get_all([(resource, key)])[0]

    def get_raw(self, resource: Resource, key: str) -> bytes:
        """Returns the object's JSON as it is stored.

        Raises: NotFound, Damaged, StoreUnavailable.
        """
        name = self._io.keys.object(resource.name, key)
        raw: Any = self._io.pipeline_each([("HGET", name, "json")])[0]
        if raw is None:
            there, raw = self._look_again(resource, key)
            if not there:
                raise errors.NotFound.of(resource.name, key.rpartition("/")[2])
        if not isinstance(raw, bytes):
            error = errors.Damaged.of(resource.name, key, _not_json(raw))
            damage.record_damage(self._io, [error], [key])
            raise error
        return raw

    def _look_again(self, resource: Resource, key: str) -> tuple[bool, Any]:
        """Checks whether an object without JSON exists, and reads the JSON once more.

        Returns whether there is a value under the object's name or its key is listed, and the JSON.
        All reads are one atomic step: an object that had no JSON in an earlier read may have been
        created since.
        """
        keys = self._io.keys
        name = keys.object(resource.name, key)
        looks = [
            ("HGET", name, "json"),
            ("EXISTS", name),
            ("ZSCORE", keys.object_keys(resource.name), key),
        ]
        raw, exists, score = self._io.pipeline_each(looks, at_once=True)
        return exists == 1 or isinstance(score, bytes | float), raw

    def get_all(self, wanted: Sequence[tuple[Resource[Kind], str]]) -> Sequence[Kind | None]:
        """Returns the objects under pairs of resource and key, read in one round trip.

        None stands for an object that is missing or cannot be read. Raises: StoreUnavailable.
        """
        keys = self._io.keys
        commands = [("HGET", keys.object(resource.name, key), "json") for resource, key in wanted]
        values = self._io.pipeline_each(commands) if commands else []
        objects: list[Kind | None] = [None] * len(wanted)
        with self._record_damage() as recorder:
            for n, ((resource, key), raw) in enumerate(zip(wanted, values, strict=True)):
                if raw is not None:
                    objects[n] = recorder.read(resource, key, raw)
        return objects

    def list(
        self,
        resource: Resource[Kind],
        namespace: str | None = None,
        *,
        label_selector: Selector | None = None,
        field_selector: FieldSelector | None = None,
        limit: int | None = None,
        continue_: str | None = None,
    ) -> ObjectList[Kind]:
        """Returns a page of at most `limit` matching objects, in the order of their keys.

        Raises: BadRequest for an invalid continue token, StoreUnavailable; EpochChanged if an epoch
        begins meanwhile.
        """
        after, version, _ = (
            decode_continue(continue_) if continue_ else ContinueToken("", self.resource_version())
        )
        items: list[Kind] = []
        for obj in self._objects(resource, namespace, after):
            if label_selector and not label_selector.matches(obj.metadata.labels):
                continue
            if field_selector and not field_selector.matches(obj, resource):
                continue
            if limit and len(items) == limit:
                return ObjectList(items, version, encode_continue(items[-1].key, version))
            items.append(obj)
        return ObjectList(items, version)

    def list_all(self, resource: Resource[Kind]) -> FullList[Kind]:
        """Returns all objects of the kind. The pages are read one by one while they are
        iterated.
        """
        version = self.resource_version()
        return FullList(self._objects(resource, None, ""), version)

    def list_indexed(self, resource: Resource[Kind], entry: str) -> FullList[Kind]:
        """Returns the objects of the kind that have the index entry (see `kcm.store.indexes`)."""
        version = self.resource_version()
        keys = [(resource, key) for _, key in self.by_index(entry, resource)]
        return FullList([obj for obj in self.get_all(keys) if obj is not None], version)

    def by_index(self, entry: str, resource: Resource | None = None) -> Sequence[tuple[str, str]]:
        """Returns the resource name and key of every object that has the index entry, sorted."""
        members = self._io.execute("SMEMBERS", self._io.keys.index(entry))
        pairs = (member.decode().split(" ", 1) for member in members)
        return sorted(
            (name, key) for name, key in pairs if resource is None or name == resource.name
        )

    def in_namespace(self, resource: Resource[Kind], namespace: str) -> Sequence[Kind]:
        """Returns all objects of the kind in a namespace, or in all namespaces for ""."""
        return list(self._objects(resource, namespace or None, ""))

    def resource_version(self) -> int:
        """Returns the counter, which is the resourceVersion of the newest write of any kind.

        What is listed next is of the same epoch, or raises EpochChanged.
        """
        return self._io.counter()

    def last_rvs(self, resources: Sequence[Resource]) -> dict[Resource, int]:
        """Returns the resourceVersion of the newest write of each resource, 0 for none.

        A cache that has reached it has every write (design 0011). If these versions were lost, they
        are restored from the watch logs. In an epoch that has just begun they are beyond whatever
        was read before. Raises: StoreUnavailable.
        """
        fields = [*(resource.name for resource in resources), ALL_KNOWN]
        read = ("HMGET", self._io.keys.last_rv(), *fields)
        (*versions, all_known), *epoch = self._io.pipeline([read, *self._io.epoch_reads()])
        if self._io.in_epoch(*epoch) is None:
            *versions, all_known = self._io.execute(*read)
        if all_known is None:
            self._io.restore_last_versions()
            *versions, _ = self._io.execute(*read)
        return {
            resource: int(version or 0)
            for resource, version in zip(resources, versions, strict=True)
        }

    def count(self, resource: Resource) -> int:
        """Returns the number of objects of the resource."""
        return int(self._io.execute("ZCARD", self._io.keys.object_keys(resource.name)))

    def count_objects(self, resources: Sequence[Resource]) -> Mapping[Resource, int]:
        """Returns how many objects each kind has, read in one round trip.

        A kind is left out whose number cannot be read.
        """
        counts = [("ZCARD", self._io.keys.object_keys(one.name)) for one in resources]
        replies = self._io.pipeline_each(counts) if counts else ()
        return {r: n for r, n in zip(resources, replies, strict=True) if isinstance(n, int)}

    def raw_pages(
        self, resource: Resource, namespace: str | None = None, after: str = "", size: int = PAGE
    ) -> Iterator[Sequence[tuple[str, bytes]]]:
        """Yields the pages of all objects that follow the key `after`, as `raw_page` returns them.

        Each page is read when it is asked for.
        """
        while page := self.raw_page(resource, namespace, after, size):
            yield page
            if len(page) < size:  # there were no more keys
                return
            after = page[-1][0]

    def raw_page(
        self, resource: Resource, namespace: str | None, after: str, count: int = PAGE
    ) -> Sequence[tuple[str, bytes]]:
        """Returns up to `count` pairs of key and JSON that follow the key `after`.

        An object that was deleted meanwhile has empty JSON (MISSING), so only an empty page means
        the end. Raises: StoreUnavailable; EpochChanged if it is read in another epoch than what
        this process read before.
        """
        first = f"({after}" if after else (f"[{namespace}/" if namespace else "-")
        last = f"({namespace}0" if namespace else "+"  # '0' follows '/'
        listed = self._io.keys.object_keys(resource.name)
        epoch = ("HGET", self._io.keys.meta(), "epoch")
        keys, read_in = self._io.pipeline(
            [("ZRANGEBYLEX", listed, first, last, "LIMIT", 0, count), epoch]
        )
        self._io.require_epoch(read_in)
        names = [key.decode(errors="surrogateescape") for key in keys]
        if not names:
            return []
        commands = [("HGET", self._io.keys.object(resource.name, key), "json") for key in names]
        *values, read_in = self._io.pipeline_each([*commands, epoch])
        self._io.require_epoch(read_in)
        return [
            (
                key,
                raw if raw and isinstance(raw, bytes) else self._raw_of_missing(resource, key, raw),
            )
            for key, raw in zip(names, values, strict=True)
        ]

    def _raw_of_missing(self, resource: Resource, key: str, reply: Any) -> bytes:
        """Returns the JSON for `raw_page` after a read without JSON: MISSING, NO_JSON or a later
        one.
        """
        there, raw = self._look_again(resource, key) if reply is None else (True, reply)
        if not there:
            return damage.MISSING
        return raw if raw and isinstance(raw, bytes) else damage.NO_JSON

    def readable_page(
        self, resource: Resource[Kind], page: Sequence[tuple[str, bytes]]
    ) -> Sequence[Kind]:
        """Returns the objects of a page that can be read, and records the others as damaged."""
        with self._record_damage() as recorder:
            objects = [recorder.read(resource, key, raw) for key, raw in page if raw]
        return [obj for obj in objects if obj is not None]

    def _objects(
        self, resource: Resource[Kind], namespace: str | None, after: str
    ) -> Iterator[Kind]:
        for page in self.raw_pages(resource, namespace, after):
            yield from self.readable_page(resource, page)

    @contextmanager
    def _record_damage(self) -> Iterator[_DamageRecorder]:
        """Yields a decoder, and at the end records the damaged objects that it found."""
        recorder = _DamageRecorder()
        yield recorder
        damage.record_damage(self._io, recorder.damaged, recorder.keys)


class _DamageRecorder:
    """Decodes objects, and collects those that cannot be read."""

    def __init__(self) -> None:
        self.damaged: list[errors.Damaged] = []
        self.keys: list[str] = []

    def read(self, resource: Resource[Kind], key: str, raw: Any) -> Kind | None:
        """Returns the object, or None if it cannot be read."""
        try:
            if not isinstance(raw, bytes) or raw == damage.NO_JSON:
                raise errors.Damaged.of(resource.name, key, _not_json(raw))
            return damage.decode_object(resource, key, raw)
        except errors.Damaged as error:
            self.damaged.append(error)
            self.keys.append(key)
            return None


def _not_json(reply: Any) -> str:
    """Returns why a reply of Redis is not the JSON of an object."""
    return str(reply) if isinstance(reply, Exception) else "its JSON is missing"


PRESENT = -1  # the version in a continue token whose list goes on at the present version


class ContinueToken(NamedTuple):
    """Where a list goes on: after a key, in what it was at a version. `issued` is the time, in
    seconds since 1970, 0 for a token that is always good.
    """

    key: str
    version: int
    issued: int = 0


def encode_continue(key: str, version: int, issued: int = 0) -> str:
    """Returns the continue token for the page after `key` in a list at `version`."""
    fields = {"v": version, "k": key, **({"t": issued} if issued else {})}
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()


def decode_continue(token: str) -> ContinueToken:
    """Returns what a continue token says. Raises: BadRequest."""
    try:
        fields = json.loads(base64.urlsafe_b64decode(token))
        key, version, issued = fields["k"], fields["v"], fields.get("t", 0)
    except (binascii.Error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise errors.BadRequest(f"continue key is not valid: {error}") from error
    if not isinstance(key, str) or type(version) is not int or type(issued) is not int:
        raise errors.BadRequest("continue key is not valid: it has no key and version")
    return ContinueToken(key, version, issued)


def each_list_item(
    reader: StoreReader, resource: Resource[Kind], **selection: Any
) -> Iterator[Kind]:
    """Yields all objects of a list, which is read page by page; client-go's EachListItem.

    `selection` are keyword arguments of `StoreReader.list`.
    """
    token: str | None = None
    while True:
        page = reader.list(resource, continue_=token, limit=500, **selection)
        yield from page.items
        if not page.continue_:
            return
        token = page.continue_
