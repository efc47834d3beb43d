"""Runs lifecycle hooks: postStart and preStop.

Source: pkg/kubelet/lifecycle/handlers.go, Kubernetes 1.33. Departure: an HTTP hook fails if the
server sends nothing for ten minutes, so that no thread waits for it forever.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from kcm.api.core_v1 import Container
from kcm.api.core_v1.handlers import HTTPGetAction, LifecycleHandler
from kcm.errors import ContainerRuntimeError
from kcm.http import blocking
from kcm.http.blocking import ClientOptions
from kcm.http.faults import CallFailed
from kcm.kubelet.cri import Runtime

_MAX_OUTPUT = 10 * 1024  # bytes of a response or output that are kept
_NO_TIMEOUT = 0.0
_HTTP_TIMEOUT = 600.0  # seconds


class HookFailed(ContainerRuntimeError):  # noqa: N818 - as its siblings in kcm.errors
    """a lifecycle hook failed"""


@dataclass(frozen=True)
class HookTarget:
    """The container whose hook is run, and its pod's IP."""

    container_id: str
    container: Container | None  # its spec, for the names of its ports
    address: str


def run_hook(
    runtime: Runtime,
    hook: LifecycleHandler,
    target: HookTarget,
    timeout: float = _NO_TIMEOUT,
) -> None:
    """Runs a hook and waits for it. Raises HookFailed and ContainerRuntimeError.

    `timeout` is in seconds and applies to commands and HTTP requests. With 0, a command has no
    limit, and a request has _HTTP_TIMEOUT.
    """
    if hook.exec is not None:
        _exec(runtime, hook.exec.command or [], target.container_id, timeout)
    elif hook.http_get is not None:
        _get(hook.http_get, target.container, target.address, timeout)
    elif hook.sleep is not None:
        time.sleep(hook.sleep.seconds)
    else:
        raise HookFailed("invalid handler: it names no exec, httpGet or sleep")


def _exec(runtime: Runtime, command: list[str], container_id: str, timeout: float) -> None:
    result = runtime.exec_sync(container_id, command, timeout)
    if result.exit_code:
        output = (result.stdout + result.stderr)[-_MAX_OUTPUT:].decode("utf-8", "replace").strip()
        raise HookFailed(f"command {command} exited with {result.exit_code}: {output}")


def _get(action: HTTPGetAction, container: Container | None, address: str, timeout: float) -> None:
    host = action.host or address
    port = resolve_port(action.port, container)
    scheme = (action.scheme or "HTTP").lower()
    path = "/" + (action.path or "").lstrip("/")
    headers = [(header.name, header.value or "") for header in action.http_headers or ()]
    options = ClientOptions(timeout or _HTTP_TIMEOUT, headers=headers)
    try:  # a response with any status code counts as success, as upstream
        blocking.get(f"{scheme}://{host}:{port}{path}", options, most=_MAX_OUTPUT)
    except (CallFailed, ValueError) as error:
        raise HookFailed(f"HTTP hook failed: {error}") from error


def resolve_port(port: int | str, container: Container | None) -> int:
    """Returns the number of a port, which may be given by its name in the container.

    Raises HookFailed.
    """
    if isinstance(port, int):
        return port
    for named in (container.ports if container else None) or ():
        if named.name == port:
            return int(named.container_port)
    if port.isdigit():
        return int(port)
    raise HookFailed(f"couldn't find port: {port}")
