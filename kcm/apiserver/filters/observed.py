"""Names the sender of a request as the author of its writes, for observers.

See `kcm.store.writes.observing`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.exchange import Exchange
from kcm.store.writes import observing
from kcm.store.writes.observing import Author, Observer, Refusal

T = TypeVar("T")
_READS = frozenset({"get", "list", "watch"})


def observed(observer: Observer, exchange: Exchange, handle: Callable[[], T]) -> Callable[[], T]:
    """Returns the handler of a request, with the author named, and whose refusal is observed."""
    asked = exchange.asked
    if asked is None or asked.verb in _READS:
        return handle
    return partial(
        _handle, observer, _author(exchange, asked), asked, exchange.request.body, handle
    )


def observe_denial(observer: Observer, exchange: Exchange, error: Exception) -> None:
    """Tells of a request that authorization refused, also if it would only have read."""
    if (asked := exchange.asked) is not None:
        observer.refused(_refusal(_author(exchange, asked), asked, asked.name, error))


def _author(exchange: Exchange, asked: Attributes) -> Author:
    agent = exchange.request.header(b"user-agent")
    return Author("user", exchange.user.name, agent, asked.verb, asked.subresource)


def _refusal(author: Author, asked: Attributes, name: str, error: Exception) -> Refusal:
    resource = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    namespace = "" if asked.resource == "namespaces" else asked.namespace
    return Refusal(author, resource, namespace, name, str(error))


def _handle(
    observer: Observer, author: Author, asked: Attributes, body: bytes, handle: Callable[[], T]
) -> T:
    try:
        with observing.acting(author):
            return handle()
    except Exception as error:  # what it is, is for the client; raised again
        observer.refused(_refusal(author, asked, asked.name or _name_in(body), error))
        raise


def _name_in(body: bytes) -> str:
    """Returns the name of the object in a create's body, "" if it is not JSON or has none."""
    try:
        return str(json.loads(body)["metadata"].get("name") or "")
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""
