"""Decides who may read the manager's pages.

On a loopback address all users of the machine may, but web pages may not: a Host header other than
a loopback name is refused, since after DNS rebinding a browser sends the name of the web page's
host. With a token, all requests but health checks need it. Only GET and HEAD are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from kcm.http.listening import bears, is_loopback_host

ALWAYS_ALLOWED = ("/healthz", "/livez", "/readyz")  # upstream's --authorization-always-allow-paths


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("404 page not found\n", 404)(scope, receive, send)


@dataclass
class PageAccess:
    """An ASGI app that lets requests pass to `app` or responds with 401, 403 or 405.

    Only GET and HEAD pass. With `loopback` the Host header must name this machine; with a `token`
    the request must carry it, except on the paths in ALWAYS_ALLOWED.
    """

    token: str = field(default="", repr=False)
    loopback: bool = True
    app: ASGIApp = _nothing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(scope) if scope["type"] == "http" else None
        if refused is None:
            await self.app(scope, receive, send)
            return
        code, words = refused
        await PlainTextResponse(f"{words}\n", code)(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "Method Not Allowed"
        if self.loopback and not is_loopback_host(headers.get(b"host", "")):
            return 403, "Forbidden: the Host header does not name this machine"
        if self.token and not self._is_allowed(scope["path"], headers.get(b"authorization", "")):
            return 401, "Unauthorized"
        return None

    def _is_allowed(self, path: str, authorization: str) -> bool:
        if (
            path.startswith(tuple(f"{allowed}/" for allowed in ALWAYS_ALLOWED))
            or path in ALWAYS_ALLOWED
        ):
            return True
        return bears(authorization, self.token)
