"""pods/exec, pods/attach and pods/portforward, which are passed on to the kubelet.

The bytes of an upgraded connection are copied without looking at them. When one side closes its
connection, both are closed. A kubelet gets no request before the client's was authorized.

Source: pkg/registry/core/pod/rest/subresources.go, ResourceLocation and streamLocation in
pkg/registry/core/pod/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from starlette.types import Scope

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apiserver.egress import logs, relaying, simulated
from kcm.apiserver.egress.kubelet import KubeletAddress, KubeletClient, kubelet_of
from kcm.apiserver.egress.simulated import SimulatedAttach
from kcm.apiserver.http_errors import MethodNotAllowed
from kcm.apiserver.request import Request, truth
from kcm.apiserver.request_info import RequestInfo
from kcm.http.transport import Fields, Upgraded
from kcm.http.upgrades import upgrade_of
from kcm.kubelet.server.channels import parse_stream_options
from kcm.kubelet.server.stream_limits import StreamLimits
from kcm.store import Store

_STREAMED = frozenset({("pods", "exec"), ("pods", "attach"), ("pods", "portforward")})
SWITCHES = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_PASSED = (
    b"connection", b"upgrade", b"sec-websocket-key", b"sec-websocket-version",
    b"sec-websocket-protocol", b"x-stream-protocol-version",
)  # fmt: skip


def is_stream(info: RequestInfo) -> bool:
    """Reports whether a request is for exec, attach or port-forward."""
    return (info.resource.name, info.subresource) in _STREAMED and bool(info.name)


def path_of(info: RequestInfo, pod: Pod, request: Request) -> str:
    """Returns the path of a stream in the kubelet's API, with its query. Raises BadRequest."""
    where = f"{pod.namespace}/{pod.name}"
    if info.subresource == "portforward":
        ports = [("port", value) for name, value in request.pairs if name == "ports"]
        return f"/portForward/{where}" + (f"?{urlencode(ports)}" if ports else "")
    query = request.query
    container = logs.container_of(pod, query.get("container", ""))
    asked = [(name, "1") for flag, name in SWITCHES.items() if truth(query, flag)]
    if info.subresource == "exec":
        commands = [("command", value) for name, value in request.pairs if name == "command"]
        if not commands:
            raise errors.BadRequest("you must specify at least 1 command for the container")
        asked += commands
    return f"/{info.subresource}/{where}/{container}?{urlencode(asked)}"


def upgrade_headers(request: Request) -> Fields:
    """Returns the headers of an upgrade request. The values of a repeated header are joined."""
    values = {name: [v for n, v in request.fields if n == name] for name in _PASSED}
    return [(name, b", ".join(listed)) for name, listed in values.items() if listed]


@dataclass(frozen=True)
class NodeStreams:
    """Handles requests for streams to pods."""

    store: Store
    kubelet: KubeletClient
    limits: StreamLimits = field(default_factory=StreamLimits)  # of those to simulated nodes

    def find(self, info: RequestInfo, request: Request) -> KubeletAddress | SimulatedAttach:
        """Returns the address of the kubelet, with the URL to request. It blocks.

        For a pod on a simulated node, it returns what answers in the kubelet's place. Raises
        NotFound, BadRequest, MethodNotAllowed, NothingRuns and KubeletUnreachable.
        """
        if request.method not in {"GET", "POST"}:
            raise MethodNotAllowed
        if not request.header(b"upgrade"):
            raise errors.BadRequest("Upgrade request required")
        pod = self.store.get(Pod.resource, info.key)
        path = path_of(info, pod, request)
        if not pod.spec.node_name:
            raise errors.BadRequest(f"pod {pod.name} does not have a host assigned")
        if simulated.is_simulated(self.store, pod.spec.node_name):
            return self._find_simulated(info, pod, request)
        kubelet = kubelet_of(self.store, pod.spec.node_name, tls=self.kubelet.tls)
        return replace(kubelet, url=kubelet.url + path)

    def _find_simulated(self, info: RequestInfo, pod: Pod, request: Request) -> SimulatedAttach:
        if info.subresource == "portforward":
            raise simulated.NothingRuns(
                f"pod {pod.name} is on the simulated node {pod.spec.node_name}: nothing listens "
                "there"
            )
        container = logs.container_of(pod, request.query.get("container", ""))
        command = [value for name, value in request.pairs if name == "command"]
        wanted = parse_stream_options(request.query)
        return simulated.open_attach(
            self.store, pod, container, wanted, command if info.subresource == "exec" else None
        )

    async def connect(
        self,
        where: KubeletAddress | SimulatedAttach,
        request: Request,
        scope: Scope,
        began: Callable[[], None],
    ) -> None:
        """Connects client and kubelet until one of them disconnects.

        `began` is called when the kubelet has accepted. Raises KubeletUnreachable and
        KubeletRefused before anything is sent.
        """
        take_over = upgrade_of(scope)
        if take_over is None:
            raise errors.BadRequest("Upgrade request required")
        if isinstance(where, SimulatedAttach):
            with self.limits.acquire(*where.container.key.split("/")):
                began()
                await where.serve(scope)
            return
        headers = upgrade_headers(request)
        async with self.kubelet.upgrade(where, headers) as response:
            if not isinstance(response, Upgraded):
                await logs.check(response)
                raise logs.KubeletRefused(
                    f"the kubelet responded {response.status} to the upgrade request"
                )
            began()
            await relaying.join(take_over, response)
