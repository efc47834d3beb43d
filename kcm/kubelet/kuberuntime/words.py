"""The messages of Events about containers and images.

Source: pkg/kubelet/kuberuntime/kuberuntime_container.go and pkg/kubelet/images/image_manager.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import Pod
from kcm.kubelet.types import described


def created(container: str) -> str:
    return f"Created container: {container}"


def started(container: str) -> str:
    return f"Started container {container}"


def stopping(container: str) -> str:
    return f"Stopping container {container}"


def restart_delayed(pod: Pod, container: str) -> str:
    return f"Back-off restarting failed container {container} in pod {described(pod)}"


def error(message: str) -> str:
    """Of a container that could not be started."""
    return f"Error: {message}"


def image_present(image: str) -> str:
    return f'Container image "{image}" already present on machine'


def image_never_pulled(image: str) -> str:
    return f'Container image "{image}" is not present with pull policy of Never'


def pulling(image: str) -> str:
    return f'Pulling image "{image}"'


def pulled(image: str, took: str, size: int) -> str:
    """`size` in bytes."""
    return (
        f'Successfully pulled image "{image}" in {took} ({took} including waiting). '
        f"Image size: {size} bytes."
    )


def pull_failed(image: str, why: str) -> str:
    return f'Failed to pull image "{image}": {why}'


def pull_delayed(image: str) -> str:
    return f'Back-off pulling image "{image}"'
