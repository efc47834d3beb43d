"""pods/exec, pods/attach, pods/portforward and nodes/proxy, which are passed on to the kubelet.

The bytes of an upgraded connection are copied without looking at them. When one side closes its
connection, both are closed. A kubelet gets no request before the client's was authorized.

Source: pkg/registry/core/pod/rest/subresources.go, ResourceLocation and streamLocation in
pkg/registry/core/pod/strategy.go, pkg/registry/core/node/rest/proxy.go, Kubernetes 1.33.
Departures: nodes/proxy accepts only GET, and no upgrades.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from starlette.types import Receive, Scope, Send

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apiserver.http_errors import MethodNotAllowed
from kcm.apiserver.nodes import logs
from kcm.apiserver.nodes.kubelet import KubeletAddress, KubeletClient, Upgraded, kubelet_of
from kcm.apiserver.request import Request, truth
from kcm.apiserver.request_info import RequestInfo
from kcm.http.upgrades import Taken, TakeOver, upgrade_of
from kcm.store import Store

_STREAMED = frozenset({("pods", "exec"), ("pods", "attach"), ("pods", "portforward")})
_CHUNK = 64 * 1024  # bytes
_SWITCHES = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_OPTIONS = {
    "exec": "PodExecOptions",
    "attach": "PodAttachOptions",
    "portforward": "PodPortForwardOptions",
}
_PASSED = (
    "connection", "upgrade", "sec-websocket-key", "sec-websocket-version",
    "sec-websocket-protocol", "x-stream-protocol-version",
)  # fmt: skip


def is_stream(info: RequestInfo) -> bool:
    """Reports whether a request is for exec, attach or port-forward."""
    return (info.resource.name, info.subresource) in _STREAMED and bool(info.name)


def is_proxy(info: RequestInfo) -> bool:
    """Reports whether a request is for the kubelet's own API."""
    return (info.resource.name, info.subresource) == ("nodes", "proxy")


def path_of(info: RequestInfo, pod: Pod, request: Request) -> str:
    """Returns the path of a stream in the kubelet's API, with its query. Raises BadRequest."""
    where = f"{pod.namespace}/{pod.name}"
    if info.subresource == "portforward":
        ports = [("port", value) for name, value in request.pairs if name == "ports"]
        return f"/portForward/{where}" + (f"?{urlencode(ports)}" if ports else "")
    query = request.query
    container = logs.container_of(pod, query.get("container", ""))
    asked = [(name, "1") for flag, name in _SWITCHES.items() if truth(query, flag)]
    if info.subresource == "exec":
        commands = [("command", value) for name, value in request.pairs if name == "command"]
        if not commands:
            raise errors.BadRequest("you must specify at least 1 command for the container")
        asked += commands
    return f"/{info.subresource}/{where}/{container}?{urlencode(asked)}"


def pod_options(info: RequestInfo, request: Request) -> dict[str, Any]:
    """Returns the options of a stream as webhooks see them. Raises BadRequest."""
    kind = _OPTIONS[info.subresource]
    options: dict[str, Any] = {"kind": kind, "apiVersion": "v1"}
    if info.subresource == "portforward":
        ports = [int(value) for name, value in request.pairs if name == "ports" and value.isdigit()]
        return {**options, **({"ports": ports} if ports else {})}
    options |= {flag: True for flag in _SWITCHES if truth(request.query, flag)}
    if container := request.query.get("container"):
        options["container"] = container
    if info.subresource == "exec":
        options["command"] = [value for name, value in request.pairs if name == "command"]
    return options


def upgrade_headers(request: Request) -> dict[str, str]:
    """Returns the headers of an upgrade request. The values of a repeated header are joined."""
    headers: dict[str, list[str]] = {}
    for name, value in request.fields:
        headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return {name: ", ".join(headers[name]) for name in _PASSED if name in headers}


@dataclass(frozen=True)
class NodeStreams:
    """Handles requests for streams to pods, and for kubelets' own APIs."""

    store: Store
    kubelet: KubeletClient

    def find(self, info: RequestInfo, request: Request) -> KubeletAddress:
        """Returns the address of the kubelet, with the URL to request. It blocks.

        Raises NotFound, BadRequest, MethodNotAllowed and KubeletUnreachable.
        """
        if is_proxy(info):
            return self._find_proxied(info, request)
        if request.method not in {"GET", "POST"}:
            raise MethodNotAllowed
        if not request.header(b"upgrade"):
            raise errors.BadRequest("Upgrade request required")
        pod = self.store.get_as(Pod, info.key)
        path = path_of(info, pod, request)
        if not pod.spec.node_name:
            raise errors.BadRequest(f"pod {pod.name} does not have a host assigned")
        kubelet = kubelet_of(self.store, pod.spec.node_name, tls=self.kubelet.tls)
        return replace(kubelet, url=kubelet.url + path)

    def _find_proxied(self, info: RequestInfo, request: Request) -> KubeletAddress:
        if request.method != "GET":
            raise MethodNotAllowed
        kubelet = kubelet_of(self.store, info.name, tls=self.kubelet.tls)
        _, _, rest = request.path.partition(f"/nodes/{info.name}/proxy")
        query = request.query_string.decode("latin-1")
        path = quote(rest or "/") + (f"?{query}" if query else "")
        return replace(kubelet, url=kubelet.url + path)

    async def proxy(
        self, where: KubeletAddress, receive: Receive, send: Send, began: Callable[[], None]
    ) -> None:
        """Sends the kubelet's response to the client. `began` is called at its start.

        Raises KubeletUnreachable and KubeletRefused.
        """
        async with self.kubelet.get(where.url, where.token) as response:
            await logs.check(response)
            began()
            await logs.head(send, response.content_type or "text/plain")
            await logs.copy(response, receive, send)

    async def connect(
        self, where: KubeletAddress, request: Request, scope: Scope, began: Callable[[], None]
    ) -> None:
        """Connects client and kubelet until one of them disconnects.

        `began` is called when the kubelet has accepted. Raises KubeletUnreachable and
        KubeletRefused before anything is sent.
        """
        take_over = upgrade_of(scope)
        if take_over is None:
            raise errors.BadRequest("Upgrade request required")
        headers = upgrade_headers(request)
        async with self.kubelet.upgrade(where.url, headers, where.token) as response:
            if not isinstance(response, Upgraded):
                await logs.check(response)
                raise logs.KubeletRefused(
                    f"the kubelet responded {response.status} to the upgrade request"
                )
            began()
            await _join(take_over, response)


async def _join(take_over: TakeOver, kubelet: Upgraded) -> None:
    client: Taken = take_over()
    client[1].write(kubelet.head)
    ways = {
        asyncio.ensure_future(_pass_on(client[0], kubelet.writer)),
        asyncio.ensure_future(_pass_on(kubelet.reader, client[1])),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        client[1].close()


async def _pass_on(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            to.write(data)
            await to.drain()
