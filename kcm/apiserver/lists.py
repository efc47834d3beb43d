"""get and list, answered from the store and from its watch cache.

A page that follows another shows the cache as it is then; its token repeats the
first page's resourceVersion, so a watch from there misses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcm import errors
from kcm.apiserver import tables
from kcm.apiserver.answers import Answer, Call, json_answer, json_bytes
from kcm.apiserver.cache import Entry
from kcm.apiserver.hub import Hub
from kcm.apiserver.selection import Page, Selection
from kcm.apiserver.tables import partial
from kcm.store import Store
from kcm.store.reader import read_token, write_token


def get(store: Store, hub: Hub, call: Call) -> Answer:
    """One object, from the store; with resourceVersion=0 from the cache."""
    target = call.target
    entry = None
    if call.query.get("resourceVersion") == "0":
        entry = hub.cache(target.resource).get(target.key)
    if entry is None:
        entry = Entry(target.resource, target.key, store.get_raw(target.resource, target.key), 0)
    return shown(call, entry)


def shown(call: Call, entry: Entry, code: int = 200, warnings: Sequence[str] = ()) -> Answer:
    """One object in the form that the client asked for."""
    if not call.form.as_:
        return Answer(entry.raw, code, warnings=warnings)
    if call.form.as_ == "Table":
        include = call.query.get("includeObject", "")
        meta = {"resourceVersion": entry.obj.metadata.resource_version or ""}
        table = tables.table(call.target.resource, [entry], call.form, include, meta)
        return json_answer(table, code, warnings)
    return json_answer(partial(entry.obj, call.form), code, warnings)


def select(hub: Hub, call: Call) -> tuple[list[Entry], int, str, int]:
    """The entries of a page, its version, the token of the next one, and how many remain.

    Raises: BadRequest, Gone, StoreUnavailable, TooLargeResourceVersion.
    """
    selection = Selection.of(call.target, call.query)
    page = Page.of(call.query)
    after, version = _start(hub, call, page)
    found = hub.cache(selection.resource).entries(selection.namespace, after)
    if not selection.everything:
        found = [entry for entry in found if selection.matches(entry)]
    if not page.limit or len(found) <= page.limit:
        return found, version, "", 0
    kept = found[: page.limit]
    return kept, version, write_token(kept[-1].key, version), len(found) - page.limit


def _start(hub: Hub, call: Call, page: Page) -> tuple[str, int]:
    resource, fresh = call.target.resource, page.fresh
    if page.continue_:
        hub.fresh(resource)
        return read_token(page.continue_)
    if fresh.version is None:
        return "", hub.fresh(resource)
    if fresh.version == 0:
        return "", hub.cached(resource)
    reached = hub.at_least(resource, fresh.version)
    if fresh.match == "Exact" and reached != fresh.version:
        raise errors.Gone(
            f"The provided resource version is not kept: {fresh.version}, current: {reached}"
        )
    return "", reached


def list_(hub: Hub, call: Call) -> Answer:
    """A page of a kind."""
    entries, version, token, remaining = select(hub, call)
    meta: dict[str, Any] = {"resourceVersion": str(version)}
    if token:
        meta |= {"continue": token}
        if Selection.of(call.target, call.query).everything:
            meta["remainingItemCount"] = remaining
    return items_answer(call, entries, meta)


def items_answer(call: Call, entries: Sequence[Entry], meta: dict[str, Any]) -> Answer:
    """Objects as a list in the form that the client asked for."""
    resource = call.target.resource
    if call.form.as_ == "Table":
        include = call.query.get("includeObject", "")
        return json_answer(tables.table(resource, entries, call.form, include, meta))
    if call.form.as_:
        items = [partial(entry.obj, call.form) for entry in entries]
        kind = {"kind": "PartialObjectMetadataList", "apiVersion": call.form.api_version}
        return json_answer(kind | {"metadata": meta, "items": items})
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta}
    items_json = b",".join([entry.raw for entry in entries])
    return Answer(json_bytes(head)[:-1] + b',"items":[' + items_json + b"]}")
