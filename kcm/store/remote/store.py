"""The interface of the store over REST, for the API server of kcm or of any Kubernetes cluster.

Controllers run unchanged with it; work queues, leases and ticks stay in Redis. What REST cannot do
is replaced:

- The last write of a kind is not known. Syncs wait until their caches have the changes that
  woke them, whose positions are in Redis, and those that they expect of earlier syncs
  (kcm/reconcile/consistency.py).
- A guard cannot be part of the write. It is a live read just before it, as upstream's controllers
  do, so it may no longer hold in the moment of the write. Nor can a fence: it is checked in Redis.
- Defaulting and validation are done by the server. An update sends what the controller changed, and
  nothing else (kcm/store/remote/differences.py).

Source: the REST calls of client-go's typed clients, Kubernetes 1.33.
"""

from __future__ import annotations

import json
import random
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.custom.partial import PartialObjectMetadata, decode_partial
from kcm.api.scheme import Resource, Scheme
from kcm.apimachinery import names
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.clock import Clock, RealClock
from kcm.redisio import Fence
from kcm.store.indexes import index_entries
from kcm.store.options import DeleteOptions, Subresource
from kcm.store.reader import PRESENT, FullList, encode_continue
from kcm.store.remote.differences import find_change
from kcm.store.remote.items import (
    PINNED,
    READ_BEFORE,
    RemoteItem,
    RemoteResult,
    decode_items,
    decode_object,
    delete_body,
    refuse,
)
from kcm.store.remote.parallel import send_all
from kcm.store.remote.rest import (
    JSON,
    METADATA,
    METADATA_LIST,
    RestClient,
    ServerBusy,
    path_of,
    path_of_key,
)
from kcm.store.remote.streams import RemoteWatches
from kcm.store.remote.work import WorkState
from kcm.store.watch import Changes
from kcm.store.writes.collections import (
    CollectionDeletion,
    ReadConverted,
    Rewriting,
    summarize_rest,
)
from kcm.store.writes.guards import Guard, TokenAvailable
from kcm.store.writes.items import Pattern, WriteItem, WriteResult, WriteStatus

PAGE = 500  # objects per request of a list, as client-go's pager
PARALLEL = 8  # the most creates and deletes that are sent at a time


class RemoteStore:
    """Reads and writes objects behind an API server."""

    takes_partial_objects = True

    def __init__(
        self,
        client: RestClient,
        work: WorkState,
        clock: Clock | None = None,
        *,
        reader: RestClient | None = None,
        field_selectors: Mapping[str, str] | None = None,
        scheme: Scheme | None = None,
    ) -> None:
        """`field_selectors` restrict lists and watches of kinds, by the resource's name. Without a
        scheme, the store has the built-in kinds. A `reader` reads in place of `client`: it may list
        what the client, which is a controller with few rights, may not get.
        """
        self.scheme = scheme or Scheme()
        self._selectors = dict(field_selectors or {})
        self._client = client
        self._work = work
        self._reader = reader
        self._rng = random.Random()
        self._streams = RemoteWatches(client, clock or RealClock(), self._selectors)
        self._pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="kcm-remote")

    def close(self) -> None:
        """Stops watches and threads, and closes connections."""
        self._streams.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    # --- reading

    @property
    def data_id(self) -> str:
        """Always "", since it is not known whether the server's store was emptied."""
        return ""

    def get(self, resource: Resource[Kind], key: str) -> Kind:
        """Returns the object under `key`. Raises: NotFound, StoreUnavailable."""
        if self._reader is not None:
            return self._list_one(self._reader, resource, key)
        accept = METADATA if resource.model.metadata_only else JSON
        return decode_object(
            self._client.request("GET", path_of_key(resource, key), accept=accept), resource
        )

    def _list_one(self, reader: RestClient, resource: Resource[Kind], key: str) -> Kind:
        namespace, _, name = key.rpartition("/")
        page = _list(reader, resource, namespace, {"fieldSelector": f"metadata.name={name}"})
        for obj in decode_items(page, resource):
            return obj
        raise errors.NotFound.of(resource.name, name)

    def get_all(self, wanted: Sequence[tuple[Resource[Kind], str]]) -> Sequence[Kind | None]:
        """Returns the objects under pairs of resource and key, None for those that are missing."""
        return [self.find(resource, key) for resource, key in wanted]

    def find(self, resource: Resource[Kind], key: str) -> Kind | None:
        """Returns the object under `key`, or None if it is missing."""
        try:
            return self.get(resource, key)
        except errors.NotFound:
            return None

    def in_namespace(self, resource: Resource[Kind], namespace: str) -> Sequence[Kind]:
        """Returns all objects of the kind in a namespace, or in all namespaces for ""."""
        return list(self.list_all(resource, namespace).objects)

    def list_all(self, resource: Resource[Kind], namespace: str = "") -> FullList[Kind]:
        """Returns all objects of the kind in a namespace, or in all namespaces for "".

        The pages are requested one by one while the objects are iterated.
        """
        try:
            first = self._page(resource, namespace, "")
        except ServerBusy as error:  # of this kind, such as one that another server serves
            raise errors.ApiError(str(error)) from error
        version = int(first["metadata"]["resourceVersion"])
        return FullList(self._objects(resource, namespace, first), version)

    def read_page(self, resource: Resource, after: str, count: int) -> Sequence[KubeObject]:
        """Returns at least `count` objects whose keys follow `after`, if there are so many.

        More are asked for, because some may have been made since the caller looked. Only for kcm's
        API server, whose tokens are known.
        """
        params = {"limit": str(2 * count)}
        if after:
            params["continue"] = encode_continue(after, PRESENT)
        return list(decode_items(_list(self._client, resource, "", params), resource))

    def list_indexed(self, resource: Resource[Kind], entry: str) -> FullList[Kind]:
        """Returns the objects of the kind that have the index entry; it lists all of them."""
        listed = self.list_all(resource)
        objects = (obj for obj in listed.objects if entry in index_entries(resource, obj))
        return FullList(objects, listed.resource_version)

    def _page(self, resource: Resource, namespace: str, token: str) -> dict[str, Any]:
        params = {"limit": str(PAGE), **({"continue": token} if token else {})}
        if selector := self._selectors.get(resource.name):
            params["fieldSelector"] = selector
        return _list(self._client, resource, namespace, params)

    def _objects(
        self, resource: Resource[Kind], namespace: str, page: dict[str, Any]
    ) -> Iterator[Kind]:
        while True:
            yield from decode_items(page, resource)
            token = page["metadata"].get("continue")
            if not token:
                return
            page = self._page(resource, namespace, token)

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Reads the changes after the positions; see `RemoteWatches.read_changes`."""
        return self._streams.read_changes(positions, block_ms)

    def last_rvs(self, resources: Sequence[Resource]) -> dict[Resource, int]:
        """Returns the resourceVersions up to which changes were dispatched, 0 for none.

        REST does not tell the last write of a kind. A sync that a change woke needs no later one.
        """
        return {**dict.fromkeys(resources, 0), **self._work.read_positions(resources)}

    # --- writing: the same items as the local store's

    def build_create(
        self, obj: Kind, guards: tuple[Guard, ...] = (), *, like: Pattern | None = None
    ) -> WriteItem[Kind]:
        """Returns the item that creates `obj`.

        A generated name is drawn here, a missing namespace is `default`, and `like` is not used.
        """
        resource = obj.resource
        meta = obj.metadata
        if not meta.name and meta.generate_name:
            obj = obj.with_metadata(name=names.generate_name(meta.generate_name, self._rng))
        if resource.namespaced and not meta.namespace:
            obj = obj.with_metadata(namespace="default")
        return RemoteItem("create", resource, obj, guards=guards)

    def build_update(
        self,
        new: Kind,
        old: Kind,
        *,
        subresource: Subresource = Subresource.NONE,
        guards: tuple[Guard, ...] = (),
    ) -> WriteItem[Kind] | None:
        """Returns the item that turns `old` into `new`, or None if nothing changes."""
        change = find_change(new, old, subresource)
        if change is None:
            return None
        version = old.metadata.resource_version or ""
        return RemoteItem("update", old.resource, new, version, guards, change=change)

    def build_delete(
        self, old: Kind, options: DeleteOptions, guards: tuple[Guard, ...] = ()
    ) -> WriteItem[Kind] | None:
        """Returns the item that deletes `old`, or None if it is being deleted already, no slower
        than that.
        """
        grace, left = options.grace_period_seconds, old.metadata.deletion_grace_period_seconds
        if old.deleting and (grace is None or grace >= (left or 0)):
            return None
        return RemoteItem("delete", old.resource, old, guards=guards, options=options)

    def write(
        self, items: Sequence[WriteItem[Kind]], *, fence: Fence | None = None
    ) -> Sequence[WriteResult[Kind]]:
        """Sends the requests, and returns the result of each.

        Creates and deletes are sent in parallel if there are no updates, otherwise all in order.
        Raises: Fenced, StoreUnavailable (also while another manager leads), ConfigurationError for
        a guard that cannot be checked over REST.
        """
        self._require_lead()
        if fence is not None and not self._work.holds(fence):
            raise errors.Fenced(f"the write was refused: {fence} is no longer held")
        guards = {guard for item in items for guard in item.guards}
        failed = {guard for guard in guards if not self._holds_now(guard)}
        if all(item.op != "update" for item in items):
            return send_all(lambda item: self._send(item, failed), items, self._pool, PARALLEL)
        return [self._send(item, failed) for item in items]

    def delete_collection(
        self, resource: Resource, namespace: str, *, fence: Fence | None = None
    ) -> CollectionDeletion:
        """Deletes all objects of a kind in a namespace, and lists what is left.

        Raises: Fenced, StoreUnavailable.
        """
        self._require_lead()
        if fence is not None and not self._work.holds(fence):
            raise errors.Fenced(f"the deletion was refused: {fence} is no longer held")
        left: list[KubeObject] = []
        try:
            if any(self._list_metadata(resource, namespace, "1")):  # of most kinds there are none
                self._delete_all(resource, namespace)
                left += self._list_metadata(resource, namespace)
        except errors.NotFound:  # the kind is no longer served
            left.clear()
        except errors.ApiError as error:
            return CollectionDeletion(resource, namespace, remaining=1, error=error)
        return summarize_rest(resource, namespace, left)

    def _require_lead(self) -> None:
        if not self._work.leads():
            raise errors.StoreUnavailable("another controller manager leads on the API server")

    def _delete_all(self, resource: Resource, namespace: str) -> None:
        """Deletes the objects in one request, or one by one where the server cannot."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        try:
            self._client.request("DELETE", path_of(resource, namespace), body=body)
        except errors.ApiError as error:
            if error.code != HTTPStatus.METHOD_NOT_ALLOWED:
                raise
            for obj in self._list_metadata(resource, namespace):
                with suppress(errors.NotFound):
                    self._client.request("DELETE", path_of_key(resource, obj.key), body=body)

    def _list_metadata(
        self, resource: Resource, namespace: str, limit: str = "0"
    ) -> Iterator[KubeObject]:
        """Yields the metadata of at most `limit` objects, with 0 of all."""
        path, params = path_of(resource, namespace), {"limit": limit}
        page = json.loads(self._client.request("GET", path, params=params, accept=METADATA_LIST))
        for item in page["items"] or ():
            yield decode_partial(json.dumps(item).encode(), PartialObjectMetadata)

    def rewrite_page(
        self,
        resource: Resource,
        after: str,
        count: int,
        *,
        fence: Fence | None = None,
        converted: ReadConverted | None = None,
    ) -> Rewriting:
        """Raises ConfigurationError: what a remote store keeps is not visible over REST."""
        raise errors.ConfigurationError("objects of a remote store cannot be rewritten from here")

    def _send(self, item: WriteItem[Kind], failed: Container[Guard]) -> WriteResult[Kind]:
        """Sends one request, unless one of its guards fails."""
        assert isinstance(item, RemoteItem)  # this store builds no others
        resource, name = item.resource, item.obj.name or ""
        for guard in item.guards:
            failure: errors.ApiError | None = None
            if isinstance(guard, TokenAvailable) and not self._work.take_token(guard.bucket):
                failure = errors.LimitReached.of(resource.name, name)
            elif guard in failed:
                failure = errors.GuardFailed.of(resource.name, name, f"guard failed: {guard}")
            if failure is not None:
                return RemoteResult(
                    item, WriteStatus.GUARD, str(guard), failed_guard=guard, failure=failure
                )
        try:
            returned = self._request(item)
        except errors.ApiError as error:
            return refuse(item, error)
        return RemoteResult(
            item, WriteStatus.OK, returned.metadata.resource_version or "", returned=returned
        )

    def _request(self, item: RemoteItem[Kind]) -> Kind:
        """Sends the request, and returns the object as the server has it now."""
        resource, obj = item.resource, item.obj
        match item.op:
            case "create":
                path = path_of(resource, obj.namespace or "")
                response = self._client.request("POST", path, body=codec.to_dict(obj))
            case "update":
                assert item.change is not None  # every update has one
                method, content_type, body = item.change.request()
                part = item.change.subresource
                path = path_of_key(resource, obj.key, part)
                response = self._client.request(method, path, body=body, content_type=content_type)
                if part is Subresource.SCALE:
                    return obj  # the answer is the Scale
            case "delete":
                path = path_of_key(resource, obj.key)
                response = self._client.request("DELETE", path, body=delete_body(item))
                if json.loads(response).get("kind") == "Status":  # it is gone at once
                    return obj
        return decode_object(response, resource)

    def _holds_now(self, guard: Guard) -> bool:
        """Reports whether the guard holds in this moment.

        Tokens are taken only when the write is sent, and guards for which the pinned version stands
        fail only when it conflicts.
        Raises: ConfigurationError for a guard that cannot be checked over REST.
        """
        if isinstance(guard, READ_BEFORE):
            return guard.holds_for(self.find(self.scheme.by_name(guard.resource), guard.key))
        if isinstance(guard, (TokenAvailable, *PINNED)):
            return True
        raise errors.ConfigurationError(f"guard {guard} cannot be checked over REST")


def _list(
    client: RestClient, resource: Resource, namespace: str, params: Mapping[str, str]
) -> dict[str, Any]:
    """Returns a page of a list, with metadata only of kinds that have no model."""
    accept = METADATA_LIST if resource.model.metadata_only else JSON
    path = path_of(resource, namespace)
    page: dict[str, Any] = json.loads(client.request("GET", path, params=params, accept=accept))
    return page
