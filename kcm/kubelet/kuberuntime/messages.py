"""Builds the messages of Events about containers and images.

Source: pkg/kubelet/kuberuntime/kuberuntime_container.go and pkg/kubelet/images/image_manager.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import Pod
from kcm.kubelet.types import format_pod

UNENFORCED = "SecurityNotEnforced"
"""The reason of an Event about security settings that the node does not enforce."""


def build_created(container: str) -> str:
    return f"Created container: {container}"


def build_started(container: str) -> str:
    return f"Started container {container}"


def build_stopping(container: str) -> str:
    return f"Stopping container {container}"


def build_restart_delayed(pod: Pod, container: str) -> str:
    return f"Back-off restarting failed container {container} in pod {format_pod(pod)}"


def build_unenforced(settings: Sequence[str]) -> str:
    return (
        "Containers of this node are processes of its machine, for which it does not enforce: "
        f"{', '.join(settings)}"
    )


def build_error(message: str) -> str:
    """Returns the message of an Event about a container that could not be started."""
    return f"Error: {message}"


def build_image_present(image: str) -> str:
    return f'Container image "{image}" already present on machine'


def build_inspect_failed(image: str, why: str) -> str:
    return f'Failed to inspect image "{image}": {why}'


def build_image_never_pulled(image: str) -> str:
    return f'Container image "{image}" is not present with pull policy of Never'


def build_pulling(image: str) -> str:
    return f'Pulling image "{image}"'


def build_pulled(image: str, took: str, size: int) -> str:
    """Returns the message of an Event about a pulled image; `size` is in bytes."""
    return (
        f'Successfully pulled image "{image}" in {took} ({took} including waiting). '
        f"Image size: {size} bytes."
    )


def build_pull_failed(image: str, why: str) -> str:
    return f'Failed to pull image "{image}": {why}'


def build_pull_delayed(image: str) -> str:
    return f'Back-off pulling image "{image}"'
