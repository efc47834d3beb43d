"""Names the sender of a request as the author of its writes, for observers.

See `kcm.store.writes.observing`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.handler_chain import RequestState
from kcm.store.writes import observing
from kcm.store.writes.observing import Author, Observer, Refusal

T = TypeVar("T")
_READS = frozenset({"get", "list", "watch"})


def observed(observer: Observer, state: RequestState, handle: Callable[[], T]) -> Callable[[], T]:
    """Returns the handler of a request, with the author named, and whose refusal is observed."""
    asked = state.asked
    if asked is None or asked.verb in _READS:
        return handle
    author = Author(
        "user",
        state.user.name,
        agent=state.request.header(b"user-agent"),
        verb=asked.verb,
        subresource=asked.subresource,
    )
    return partial(_handle, observer, author, asked, state.request.body, handle)


def _handle(
    observer: Observer, author: Author, asked: Attributes, body: bytes, handle: Callable[[], T]
) -> T:
    try:
        with observing.acting(author):
            return handle()
    except Exception as error:  # what it is, is for the client; raised again
        resource = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
        name = asked.name or _name_in(body)
        observer.refused(Refusal(author, resource, asked.namespace, name, str(error)))
        raise


def _name_in(body: bytes) -> str:
    """Returns the name of the object in a create's body, "" if it is not JSON or has none."""
    try:
        return str(json.loads(body)["metadata"].get("name") or "")
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""
