"""Lifecycle hooks: postStart and preStop.

Source: pkg/kubelet/lifecycle/handlers.go, Kubernetes 1.33.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from kcm.api.core_v1 import Container
from kcm.errors import ContainerRuntimeError
from kcm.kubelet.runtime.interface import Runtime

_MOST = 10 * 1024  # bytes of an answer that are read
_FOREVER = 0.0


class HookFailed(ContainerRuntimeError):  # noqa: N818 - as its siblings in kcm.errors
    """a lifecycle hook failed"""


@dataclass(frozen=True)
class Target:
    """The container that a hook is for, and the address of its pod."""

    container_id: str
    container: Container | None
    address: str


def run_hook(
    runtime: Runtime,
    hook: dict[str, Any],
    target: Target,
    timeout: float = _FOREVER,
) -> None:
    """Run a hook to its end, at most `timeout` seconds (0: without end). Raises HookFailed."""
    if action := hook.get("exec"):
        _exec(runtime, list(action.get("command") or ()), target.container_id, timeout)
    elif action := hook.get("httpGet"):
        _get(action, target.container, target.address, timeout)
    elif action := hook.get("sleep"):
        time.sleep(float(action.get("seconds") or 0))
    else:
        raise HookFailed("invalid handler: it names no exec, httpGet or sleep")


def _exec(runtime: Runtime, command: list[str], container_id: str, timeout: float) -> None:
    result = runtime.exec_sync(container_id, command, timeout)
    if result.exit_code:
        said = (result.stdout + result.stderr)[-_MOST:].decode("utf-8", "replace").strip()
        raise HookFailed(f"command {command} exited with {result.exit_code}: {said}")


def _get(action: dict[str, Any], container: Container | None, address: str, timeout: float) -> None:
    host = action.get("host") or address
    port = port_number(action.get("port", 80), container)
    scheme = str(action.get("scheme") or "HTTP").lower()
    path = "/" + str(action.get("path") or "").lstrip("/")
    request = urllib.request.Request(f"{scheme}://{host}:{port}{path}")
    for header in action.get("httpHeaders") or ():
        request.add_header(str(header.get("name")), str(header.get("value")))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout or None) as answer:
            answer.read(_MOST)
    except urllib.error.HTTPError as error:
        error.close()  # any answer will do, as upstream
    except (OSError, ValueError) as error:
        raise HookFailed(f"HTTP hook failed: {error}") from error


def port_number(port: int | str, container: Container | None) -> int:
    """A port, by number or by its name in the container. Raises HookFailed."""
    if isinstance(port, int):
        return port
    for found in (container.ports if container else None) or ():
        if found.name == port:
            return int(found.container_port)
    if port.isdigit():
        return int(port)
    raise HookFailed(f"couldn't find port: {port}")
