"""The admission plugin NodeRestriction; its rules are in `kcm.apiserver.auth.node.restriction`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcm.api.admissionregistration_v1 import CONNECT
from kcm.apiserver.admission.request import request_of
from kcm.apiserver.auth.node.restriction import NodeRestriction, NodeWrite, WantedToken
from kcm.store.admission.plugin import Plugin, Write


class NodeRestrictionPlugin(Plugin):
    """Refuses writes that the user's node may not make."""

    name = "NodeRestriction"
    admits_unreadable = True

    def __init__(self, restriction: NodeRestriction) -> None:
        self._restriction = restriction

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return operation != CONNECT

    def admit(self, write: Write) -> Write:
        """Raises: Forbidden, NotFound."""
        request = request_of(write)
        if request is None:
            return write
        new = write.new
        obj = new if new is not None else write.old  # of a collection, one after the other
        wanted = NodeWrite(
            write.operation,
            write.resource,
            request.namespace or (obj.namespace if obj is not None else ""),
            request.name or (obj.name if obj is not None else ""),
            write.subresource,
            new,
            write.old,
            _read_token(write.sent) if write.sent is not None else None,
        )
        self._restriction.check(request.caller, wanted)
        return write


def _read_token(sent: Mapping[str, Any]) -> WantedToken:
    """Returns what a TokenRequest asks for; nothing for what is none."""
    spec = sent.get("spec") or {}
    bound = spec.get("boundObjectRef") or {}
    return WantedToken(
        bound.get("apiVersion") or "",
        bound.get("kind") or "",
        bound.get("name") or "",
        bound.get("uid") or "",
        tuple(spec.get("audiences") or ()),
    )
