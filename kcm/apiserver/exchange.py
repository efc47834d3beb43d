"""`Exchange`: a request on its way through the filters, and where its answer goes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from starlette.types import Receive, Scope, Send

from kcm.apiserver.auth.attributes import ANYBODY, Attributes, User
from kcm.apiserver.auth.authorizer import Authorizer, Caller
from kcm.apiserver.flowcontrol.schemas import Flow
from kcm.apiserver.http.responses import Response
from kcm.apiserver.request import Remarks, Request
from kcm.apiserver.request_info import RequestInfo


@dataclass
class Exchange:
    """A request, what the filters have found out about it so far, and where its answer goes.

    `sender` is who authenticated, `user` is on whose behalf the request acts; they differ when the
    sender impersonates another user. `asked` is what authorization decides about, None for public
    paths; `info` is the resource that is served there, None for pages such as discovery. `flow` is
    set by priority and fairness.
    """

    request: Request
    scope: Scope
    receive: Receive
    send: Send
    asked: Attributes | None = None
    sender: User | None = None
    user: User = ANYBODY
    info: RequestInfo | None = None
    flow: Flow | None = None
    remarks: Remarks = field(default_factory=Remarks)
    headers: tuple[tuple[bytes, bytes], ...] = ()  # of the answer, besides those of the response
    until_sent: ExitStack = field(default_factory=ExitStack)  # what is held until the answer is

    @property
    def payer(self) -> User:
        """On whose account the request counts: its sender, or anybody."""
        return self.sender or ANYBODY

    def caller(self, authorizer: Authorizer) -> Caller:
        """Returns the user together with the authorizer, for handlers."""
        return Caller(self.user, authorizer)


Handler = Callable[[Exchange], Awaitable[Response | None]]
"""Returns the response to a request, or None once it has been answered already."""


class Filter(Protocol):
    """One step of every request; upstream's filters of the handler chain."""

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Returns what `proceed` returns, which is the rest of the chain, or answers itself.

        Raises the error that the client gets, and Disconnected if the client has left.
        """
