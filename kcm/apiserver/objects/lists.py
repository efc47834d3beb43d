"""The verbs get and list, from the store and from its watch cache.

All pages of a list show the state at its first page, which is restored from the cache's history. If
the history no longer reaches back that far, the client gets an error and a token for the rest in
its present state. A list at an exact version is restored in the same way.

Source: staging/src/k8s.io/apiserver/pkg/storage/{etcd3/store,etcd3/errors,continue}.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kcm import errors
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.cache.entries import Entry, json_start
from kcm.apiserver.http.responses import ApiRequest, Response, json_bytes, json_response
from kcm.apiserver.http_errors import ContinueExpired
from kcm.apiserver.objects import tables
from kcm.apiserver.objects.selection import Freshness, ObjectSelection, Page
from kcm.apiserver.objects.tables import partial_metadata
from kcm.apiserver.request import Staleness
from kcm.redisio import greenlets
from kcm.redisio.pipelining import LONG_REPLY
from kcm.store import Store, damage
from kcm.store.reader import PRESENT, decode_continue, encode_continue


def get(store: Store, cacher: Cacher, request: ApiRequest) -> Response:
    """Returns an object from the store, or from the cache for resourceVersion=0."""
    info = request.info
    cached = cacher.cache(info.resource).get(info.key)
    if request.stale is not None:
        cached = _find_stale(cacher, request, request.stale)
    if cached is not None and request.query.get("resourceVersion") == "0":
        greenlets.raise_if_long(cached.size, LONG_REPLY)  # as if it had been read
        entry = cached
    else:
        raw = store.get_raw(info.resource, info.key)
        # An entry may be known in the version of the request, which saves a conversion.
        is_fresh = cached is not None and cached.raw == raw
        entry = (
            cached if cached is not None and is_fresh else _read_entry(info.resource, info.key, raw)
        )
    if request.form.as_:
        greenlets.raise_if_many_values(entry.raw)
    return entry_response(request, _convert(cacher, info.resource, [entry])[0])


def _read_entry(resource: Resource, key: str, raw: bytes) -> Entry:
    """Returns the entry of stored JSON. Raises Damaged if another version of kcm has stored it, and
    it cannot be read.
    """
    if resource.conversion is None and not raw.startswith(json_start(resource)):
        return Entry.build(resource, damage.decode_object(resource, key, raw))
    return Entry(resource, key, raw, 0)


def _find_stale(cacher: Cacher, request: ApiRequest, stale: Staleness) -> Entry:
    """Returns an object as it was. Raises NotFound if it was not there."""
    info, version = request.info, _stale_version(cacher, request, stale)
    for entry in cacher.cache(info.resource).snapshot(version, info.namespace):
        if entry.key == info.key:
            return entry
    raise errors.NotFound.of(info.resource.name, info.name)


def _stale_version(cacher: Cacher, request: ApiRequest, stale: Staleness) -> int:
    cacher.wait_until_filled(request.info.resource)
    cache = cacher.cache(request.info.resource)
    if stale.version:
        version = min(max(stale.version, cache.oldest_version), cache.position)
    else:
        version = cache.version_before(stale.changes)
    return max(version, 1)  # a list at 0 is a list of now


def _convert(cacher: Cacher, resource: Resource, entries: Sequence[Entry]) -> list[Entry]:
    """Returns entries in the version of a request. Raises ConversionFailed."""
    if cacher.converter is not None:
        cacher.converter.convert_entries(entries, resource)
    return [entry.convert_to(resource) for entry in entries]


def entry_response(
    request: ApiRequest, entry: Entry, code: int = 200, warnings: Sequence[str] = ()
) -> Response:
    """Returns a response with an object, in the form that the client asked for."""
    if not request.form.as_:
        return Response(entry.raw, code, warnings=warnings)
    if request.form.as_ == "Table":
        include = request.query.get("includeObject", "")
        meta = {"resourceVersion": entry.obj.metadata.resource_version or ""}
        table = tables.table(request.info.resource, [entry], request.form, include, meta)
        return json_response(table, code, warnings)
    return json_response(partial_metadata(entry.obj, request.form), code, warnings)


# Seconds that a continue token is good for: kube-apiserver has etcd drop old versions so often.
GOOD_FOR = 300.0
_TOO_OLD = "The resourceVersion for the provided list is too old."


@dataclass(frozen=True)
class ListedPage:
    """The entries of a page, the version that it shows, and how the list continues."""

    entries: Sequence[Entry]
    version: int
    token: str = ""  # the continue token for the next page, "" on the last one
    remaining: int | None = None  # entries on later pages; None with selectors


def select(cacher: Cacher, request: ApiRequest) -> ListedPage:
    """Returns the page of a list that a request asks for.

    Raises BadRequest, Gone, StoreUnavailable and TooLargeResourceVersion.
    """
    selection = ObjectSelection.of(request.info, request.query)
    page = Page.of(request.query)
    if request.stale is not None and not page.continue_:
        version = _stale_version(cacher, request, request.stale)
        page = replace(page, fresh=Freshness(version, "Exact"))
    after, version = _start(cacher, request, page)
    matching, version = _entries(cacher, selection, page, after, version)
    if not selection.everything:
        shown = _convert(cacher, selection.resource, matching)
        matching = [entry for entry in shown if selection.matches(entry)]
    kept = matching[: page.limit] if page.limit else matching
    token = ""
    if len(kept) < len(matching):
        token = encode_continue(kept[-1].key, version, int(cacher.now().timestamp()))
    remaining = len(matching) - len(kept) if token and selection.everything else None
    if selection.everything:
        kept = _convert(cacher, selection.resource, kept)
    return ListedPage(kept, version, token, remaining)


def _entries(
    cacher: Cacher, selection: ObjectSelection, page: Page, after: str, version: int
) -> tuple[list[Entry], int]:
    """Returns the entries of a list, and the version that they show.

    It is `version` or, for what need not be exact, a later one that the cache has reached.
    """
    cache, namespace = cacher.cache(selection.resource), selection.namespace
    if page.limit or page.continue_ or page.fresh.match == "Exact":
        try:
            return cache.snapshot(version, namespace, after), version
        except errors.Gone:
            if page.continue_:
                raise ContinueExpired.at(encode_continue(after, PRESENT)) from None
            if page.fresh.match == "Exact":
                raise errors.Gone(_TOO_OLD) from None
    entries, position = cache.present(namespace, after)
    return entries, max(version, position)


def _start(cacher: Cacher, request: ApiRequest, page: Page) -> tuple[str, int]:
    """Returns the key after which the page begins, and the version that it shows."""
    resource, fresh = request.info.resource, page.fresh
    if page.continue_:
        reached = cacher.wait_until_fresh(resource)
        after, version, issued = decode_continue(page.continue_)
        if issued and cacher.now().timestamp() - issued > GOOD_FOR:
            raise ContinueExpired.at(encode_continue(after, PRESENT))
        if version > reached:
            raise errors.BadRequest(
                f"continue key is not valid: its version {version} is in the future"
            )
        return after, reached if version == PRESENT else version
    if fresh.version is None:
        return "", cacher.wait_until_fresh(resource)
    if fresh.version == 0:
        return "", cacher.wait_until_filled(resource)
    reached = cacher.wait_for_version(resource, fresh.version)
    return "", fresh.version if fresh.match == "Exact" else reached


def list_(cacher: Cacher, request: ApiRequest) -> Response:
    """Returns a response with a page of a list."""
    page = select(cacher, request)
    meta: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.token:
        meta["continue"] = page.token
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
    return items_response(request, page.entries, meta)


def items_response(
    request: ApiRequest,
    entries: Sequence[Entry],
    meta: dict[str, Any],
    warnings: Sequence[str] = (),
) -> Response:
    """Returns a response with objects as a list, in the form that the client asked for."""
    resource = request.info.resource
    if request.form.as_ == "Table":
        include = request.query.get("includeObject", "")
        table = tables.table(resource, entries, request.form, include, meta)
        return json_response(table, warnings=warnings)
    if request.form.as_:
        items = [partial_metadata(entry.obj, request.form) for entry in entries]
        kind = {"kind": "PartialObjectMetadataList", "apiVersion": request.form.api_version}
        return json_response(kind | {"metadata": meta, "items": items}, warnings=warnings)
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": meta}
    body = json_bytes(head)[:-1] + b',"items":[' + _items_json(resource, entries) + b"]}"
    return Response(body, warnings=warnings)


def _items_json(resource: Resource, entries: Sequence[Entry]) -> bytes:
    """Returns the items of a list. As upstream, those of built-in kinds have no kind and
    apiVersion, which the caches keep apart, so that nothing is decoded or copied.
    """
    if isinstance(resource, CustomResource) or not entries:
        return b",".join([entry.tail for entry in entries])
    return b"{" + b",{".join([entry.tail for entry in entries])
