"""Lifecycle hooks: postStart and preStop.

Source: pkg/kubelet/lifecycle/handlers.go, Kubernetes 1.33. Departure: a server that says
nothing for ten minutes has failed an HTTP hook, so that no thread waits for it for good.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from dataclasses import dataclass

from kcm.api.core_v1 import Container
from kcm.api.core_v1.handlers import HTTPGetAction, LifecycleHandler
from kcm.errors import ContainerRuntimeError
from kcm.kubelet.cri import Runtime

_MAX_OUTPUT = 10 * 1024  # bytes of an answer that are read
_NO_TIMEOUT = 0.0
_HTTP_TIMEOUT = 600.0  # seconds


class HookFailed(ContainerRuntimeError):  # noqa: N818 - as its siblings in kcm.errors
    """a lifecycle hook failed"""


@dataclass(frozen=True)
class HookTarget:
    """The container that a hook is for, and the address of its pod."""

    container_id: str
    container: Container | None
    address: str


def run_hook(
    runtime: Runtime,
    hook: LifecycleHandler,
    target: HookTarget,
    timeout: float = _NO_TIMEOUT,
) -> None:
    """Run a hook to its end, at most `timeout` seconds (0: without end). Raises HookFailed."""
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
    request = urllib.request.Request(f"{scheme}://{host}:{port}{path}")
    for header in action.http_headers or ():
        request.add_header(header.name, header.value)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout or _HTTP_TIMEOUT) as answer:
            answer.read(_MAX_OUTPUT)
    except urllib.error.HTTPError as error:
        error.close()  # any answer will do, as upstream
    except (OSError, ValueError) as error:
        raise HookFailed(f"HTTP hook failed: {error}") from error


def resolve_port(port: int | str, container: Container | None) -> int:
    """A port, by number or by its name in the container. Raises HookFailed."""
    if isinstance(port, int):
        return port
    for named in (container.ports if container else None) or ():
        if named.name == port:
            return int(named.container_port)
    if port.isdigit():
        return int(port)
    raise HookFailed(f"couldn't find port: {port}")
