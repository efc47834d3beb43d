"""Images: there, pulled, or not to be had yet.

Source: EnsureImageExists in pkg/kubelet/images/image_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Protocol

from kcm import errors
from kcm.api.core_v1 import Container, Pod
from kcm.apimachinery.durations import printed
from kcm.clock import Clock
from kcm.kubelet.kuberuntime import words
from kcm.kubelet.kuberuntime.backoff import Backoff
from kcm.kubelet.kuberuntime.results import (
    IMAGE_NEVER_PULL,
    IMAGE_PULL_ERROR,
    StartResult,
    pull_waits,
)
from kcm.kubelet.recorder import Kind, Recorder


class ImageService(Protocol):
    """Where images come from, for a runtime that has any."""

    def has_image(self, pod: Pod, container: Container) -> bool:
        """Whether the container's image is on this machine."""
        ...

    def pull_image(self, pod: Pod, container: Container) -> int:
        """Get it; returns its size in bytes. Raises ImagePullFailed."""
        ...


class ImageManager:
    """Thread-safe."""

    def __init__(self, service: ImageService, recorder: Recorder, clock: Clock) -> None:
        self._service = service
        self._recorder = recorder
        self._clock = clock
        self._backoff = Backoff(clock)
        self._failures: dict[str, str] = {}

    def ensure(self, pod: Pod, container: Container) -> StartResult | None:
        """Have a container's image; None once it is there, else why it is not."""
        image = container.image or ""
        present = self._service.has_image(pod, container)
        if present and container.image_pull_policy != "Always":
            self._tell(pod, container, "Normal", "Pulled", words.image_present(image))
            return None
        if container.image_pull_policy == "Never":
            text = words.image_never_pulled(image)
            self._tell(pod, container, "Warning", IMAGE_NEVER_PULL, text)
            return self._failed(pod, container, StartResult(container.name, IMAGE_NEVER_PULL, text))
        return self._pull(pod, container, image)

    def _pull(self, pod: Pod, container: Container, image: str) -> StartResult | None:
        key = f"{pod.uid}_{image}"
        if self._backoff.is_waiting(key):
            self._tell(pod, container, "Normal", "BackOff", words.pull_delayed(image))
            result = pull_waits(container.name, image, self._failures.get(key, ""))
            return self._failed(pod, container, result)
        self._tell(pod, container, "Normal", "Pulling", words.pulling(image))
        began = self._clock.monotonic()
        try:
            size = self._service.pull_image(pod, container)
        except errors.ImagePullFailed as error:
            text = words.pull_failed(image, error.message)
            self._tell(pod, container, "Warning", "Failed", text)
            self._backoff.next(key)
            self._failures[key] = error.message
            result = StartResult(container.name, IMAGE_PULL_ERROR, error.message)
            return self._failed(pod, container, result)
        took = printed(round(self._clock.monotonic() - began, 3))
        self._tell(pod, container, "Normal", "Pulled", words.pulled(image, took, size))
        self._failures.pop(key, None)
        return None

    def _failed(self, pod: Pod, container: Container, result: StartResult) -> StartResult:
        self._tell(pod, container, "Warning", "Failed", words.error(result.reason))
        return result

    def _tell(self, pod: Pod, container: Container, kind: Kind, reason: str, text: str) -> None:
        self._recorder.of_pod(pod, kind, reason, text, container.name)
