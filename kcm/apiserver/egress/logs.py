"""The subresource pods/log: streams a container's log from its node's kubelet.

The kubelet's response is streamed in the event loop. Only the lookup of pod and node runs in a
thread.

Source: pkg/registry/core/pod/rest/log.go, LogLocation in pkg/registry/core/pod/strategy.go and
ValidatePodLogOptions in pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from starlette.types import Receive, Send

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import format_time, parse_time
from kcm.apiserver.egress import relaying, simulated
from kcm.apiserver.egress.kubelet import KubeletAddress, KubeletClient, kubelet_of
from kcm.apiserver.egress.simulated import SimulatedLog
from kcm.apiserver.request import Request, truth
from kcm.apiserver.request_info import RequestInfo
from kcm.http.faults import CallFailed
from kcm.http.transport import Response
from kcm.kubelet.server.logs import LogOptions
from kcm.kubelet.server.stream_limits import StreamLimits
from kcm.store import Store

_FLAGS = ("follow", "previous", "timestamps")
_AT_LEAST = {"sinceSeconds": 1, "tailLines": 0, "limitBytes": 1}
_MUST = {0: "must be greater than or equal to 0", 1: "must be greater than 0"}
_FINE = range(200, 207)
_SHOWN = 10_000  # the most bytes of a kubelet's error that a message shows


def is_log(method: str, info: RequestInfo) -> bool:
    """Reports whether a request is for a container's log."""
    names = (info.resource.name, info.subresource)
    return method == "GET" and names == ("pods", "log") and bool(info.name)


def location(
    store: Store, info: RequestInfo, query: Mapping[str, str], *, tls: bool | None
) -> KubeletAddress | SimulatedLog | None:
    """Returns the address of the pod's kubelet, with the URL of the log.

    Returns None for a pod without a node, and the log itself for a pod on a simulated node. Raises
    NotFound, BadRequest, Invalid and KubeletUnreachable.
    """
    options = _options(query, info.name)
    pod = store.get(Pod.resource, info.key)
    container = container_of(pod, query.get("container", ""))
    if not pod.spec.node_name:
        return None
    if simulated.is_simulated(store, pod.spec.node_name):
        wanted = LogOptions.of(options, store.clock.now())
        return simulated.open_log(store, pod, container, wanted)
    kubelet = kubelet_of(store, pod.spec.node_name, tls=tls)
    path = f"{kubelet.url}/containerLogs/{pod.namespace}/{pod.name}/{container}"
    return replace(kubelet, url=f"{path}?{urlencode(options)}" if options else path)


def _options(query: Mapping[str, str], name: str) -> dict[str, str]:
    """Returns the parameters of the kubelet's request. Raises BadRequest and Invalid.

    `name` is the pod's name, for the error.
    """
    parameters = {flag: "true" for flag in _FLAGS if truth(query, flag)}
    faults: list[errors.FieldError] = []
    for option, least in _AT_LEAST.items():
        if not query.get(option):
            continue
        number = _whole(option, query[option])
        if number < least:
            faults.append(errors.FieldError("Invalid value", option, number, _MUST[least]))
        parameters[option] = str(number)
    if query.get("sinceTime"):
        parameters["sinceTime"] = _instant(query["sinceTime"])
    if "sinceTime" in parameters and "sinceSeconds" in parameters:
        why = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        faults.append(errors.FieldError("Forbidden", "", None, why))
    if faults:
        raise errors.Invalid(faults, kind="PodLogOptions", name=name)
    return parameters


def _whole(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise errors.BadRequest(
            f"{field}: {errors.shorten(text)!r} is not a whole number"
        ) from None


def _instant(text: str) -> str:
    try:
        return format_time(parse_time(text))
    except ValueError as error:
        raise errors.BadRequest(f"sinceTime: {error}") from None


def container_of(pod: Pod, wanted: str) -> str:
    """Returns the name of the container: `wanted`, or the only one of the pod if that is "".

    Raises BadRequest.
    """
    spec = pod.spec
    containers = [container.name for container in spec.containers]
    first = [container.name for container in spec.init_containers or ()]
    later = [container.name for container in spec.ephemeral_containers or ()]
    if wanted:
        if wanted not in (*containers, *first, *later):
            raise errors.BadRequest(f"container {wanted} is not valid for pod {pod.name}")
        return wanted
    if len(containers) == 1:
        return containers[0]
    message = f"a container name must be specified for pod {pod.name}"
    if containers:
        message += f", choose one of: {_quote_all(containers)}"
    if first:
        message += f" or one of the init containers: {_quote_all(first)}"
    if later:
        message += f" or one of the ephemeral containers: {_quote_all(later)}"
    raise errors.BadRequest(message)


def _quote_all(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"


@dataclass(frozen=True)
class Logs:
    """Handles requests for logs."""

    store: Store
    kubelet: KubeletClient
    limits: StreamLimits = field(default_factory=StreamLimits)  # of logs on simulated nodes

    def find(self, info: RequestInfo, request: Request) -> KubeletAddress | SimulatedLog | None:
        """Returns the address of the log, or the log itself, as `location` does. It blocks."""
        return location(self.store, info, request.query, tls=self.kubelet.tls)

    async def pass_on(
        self,
        where: KubeletAddress | SimulatedLog | None,
        receive: Receive,
        send: Send,
        began: Callable[[], None],
    ) -> None:
        """Streams the log until it ends or the client disconnects. `began` is called at its start.

        Raises KubeletUnreachable and KubeletRefused before anything is sent.
        """
        if where is None:
            began()
            await head(send)
            await send({"type": "http.response.body", "body": b""})
            return
        if isinstance(where, SimulatedLog):
            with self.limits.acquire(*where.container.key.split("/")):
                began()
                await head(send)
                await copy(Response(200, where.pieces()), receive, send)
            return
        async with self.kubelet.get(where) as response:
            await check(response)
            began()
            await head(send)
            await copy(response, receive, send)


async def copy(response: Response, receive: Receive, send: Send) -> None:
    """Sends the body of a response until it ends or the client disconnects."""
    await relaying.until_left(_copy(response, send), receive)


async def _copy(response: Response, send: Send) -> None:
    # The head is sent already, so an error of the kubelet can only end the body.
    with contextlib.suppress(CallFailed):
        async for piece in response.body:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def head(send: Send, content_type: str = "text/plain") -> None:
    """Sends the head of a successful response."""
    kind = content_type.encode("latin-1")
    headers = [(b"content-type", kind), (b"cache-control", b"no-cache, private")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


class KubeletRefused(errors.ApiError):
    """The kubelet refused the request."""


async def check(response: Response) -> None:
    """Raises KubeletRefused unless the response reports success."""
    if response.status in _FINE:
        return
    reason = b""
    async for piece in response.body:
        reason += piece
        if len(reason) > _SHOWN:
            break
    error = KubeletRefused(reason[:_SHOWN].decode(errors="replace").strip())
    error.code, error.reason = _interpret(response.status)
    raise error


def _interpret(code: int) -> tuple[int, str]:
    reasons: dict[int, Any] = {400: "BadRequest", 404: "NotFound", 403: "Forbidden"}
    reasons |= {401: "Unauthorized", 429: "TooManyRequests", 503: "ServiceUnavailable"}
    return (code, reasons[code]) if code in reasons else (500, "InternalError")
