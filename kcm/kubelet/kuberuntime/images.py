"""The image manager: pulls the images of containers, for runtimes that have images.

Source: EnsureImageExists in pkg/kubelet/images/image_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from kcm import errors
from kcm.api.core_v1 import Container, Pod
from kcm.apimachinery.durations import format_seconds
from kcm.clock import Clock
from kcm.helpers.backoff import Backoff
from kcm.kubelet.environment.variables import Lookups
from kcm.kubelet.images.credentials import find_credentials
from kcm.kubelet.images.plugins import CredentialPlugins
from kcm.kubelet.images.store import Credentials, ImageStore
from kcm.kubelet.kuberuntime import messages
from kcm.kubelet.kuberuntime.results import (
    IMAGE_INSPECT_ERROR,
    IMAGE_NEVER_PULL,
    IMAGE_PULL_ERROR,
    StartResult,
    build_pull_backoff_result,
)
from kcm.kubelet.recorder import EventType, KubeletEventRecorder


class ImageService(Protocol):
    """Pulls images for a container runtime, and reports which of them are present."""

    def has_image(self, pod: Pod, container: Container) -> bool:
        """Reports whether the container's image is on this node."""
        ...

    def pull_image(self, pod: Pod, container: Container) -> int:
        """Pulls the container's image; returns its size in bytes. Raises ImagePullFailed."""
        ...


class StoredImages:
    """Implements ImageService with the images of a container runtime. Thread-safe."""

    def __init__(
        self,
        store: ImageStore,
        lookups: Lookups,
        *,
        at_once: int,
        plugins: CredentialPlugins | None = None,
    ) -> None:
        """`lookups` has the Secrets with which images are pulled, `at_once` of them at a time.

        `plugins` are the node's own, asked after these.
        """
        self._store = store
        self._plugins = plugins
        self._lookups = lookups
        self._turns = threading.BoundedSemaphore(at_once)

    def has_image(self, pod: Pod, container: Container) -> bool:
        return self._store.find(container.image or "") is not None

    def pull_image(self, pod: Pod, container: Container) -> int:
        image = container.image or ""
        credentials = find_credentials(pod, image, self._lookups)
        if self._plugins is not None:
            credentials += self._plugins.find(image)
        failure = errors.ImagePullFailed()
        attempts: list[Credentials | None] = [*credentials] or [None]
        for attempt in attempts:
            try:
                with self._turns:
                    return self._store.pull(image, attempt).size
            except errors.ImagePullFailed as error:
                failure = error
        raise failure


class ImageManager:
    """Pulls images according to the pull policy, with back-off after failures. Thread-safe."""

    def __init__(self, service: ImageService, recorder: KubeletEventRecorder, clock: Clock) -> None:
        self._service = service
        self._recorder = recorder
        self._clock = clock
        self._backoff = Backoff(clock)
        self._failures: dict[str, str] = {}

    def ensure_image(self, pod: Pod, container: Container) -> StartResult | None:
        """Makes the image available. Returns None once it is on this node, else why it is not."""
        image = container.image or ""
        try:
            present = self._service.has_image(pod, container)
        except errors.ContainerRuntimeError as error:
            text = messages.build_inspect_failed(image, error.message)
            self._record(pod, container, "Warning", "InspectFailed", text)
            return self._record_failure(
                pod, container, StartResult(container.name, IMAGE_INSPECT_ERROR, text)
            )
        if present and container.image_pull_policy != "Always":
            self._record(pod, container, "Normal", "Pulled", messages.build_image_present(image))
            return None
        if container.image_pull_policy == "Never":
            text = messages.build_image_never_pulled(image)
            self._record(pod, container, "Warning", IMAGE_NEVER_PULL, text)
            return self._record_failure(
                pod, container, StartResult(container.name, IMAGE_NEVER_PULL, text)
            )
        return self._pull(pod, container, image)

    def _pull(self, pod: Pod, container: Container, image: str) -> StartResult | None:
        key = f"{pod.uid}_{image}"
        if self._backoff.is_in_backoff(key):
            self._record(pod, container, "Normal", "BackOff", messages.build_pull_delayed(image))
            result = build_pull_backoff_result(container.name, image, self._failures.get(key, ""))
            return self._record_failure(pod, container, result)
        self._record(pod, container, "Normal", "Pulling", messages.build_pulling(image))
        began = self._clock.monotonic()
        try:
            size = self._service.pull_image(pod, container)
        except errors.ImagePullFailed as error:
            text = messages.build_pull_failed(image, error.message)
            self._record(pod, container, "Warning", "Failed", text)
            self._backoff.next(key)
            self._failures[key] = error.message
            result = StartResult(container.name, IMAGE_PULL_ERROR, error.message)
            return self._record_failure(pod, container, result)
        took = format_seconds(round(self._clock.monotonic() - began, 3))
        self._record(pod, container, "Normal", "Pulled", messages.build_pulled(image, took, size))
        self._failures.pop(key, None)
        return None

    def _record_failure(self, pod: Pod, container: Container, result: StartResult) -> StartResult:
        self._record(pod, container, "Warning", "Failed", messages.build_error(result.reason))
        return result

    def _record(
        self, pod: Pod, container: Container, event_type: EventType, reason: str, text: str
    ) -> None:
        self._recorder.record_pod_event(pod, event_type, reason, text, container.name)


@dataclass(frozen=True)
class NodeImages:
    """The manager that pulls images, and the images themselves if there really are some."""

    manager: ImageManager
    store: ImageStore | None = None

    def ensure(self, pod: Pod, container: Container) -> StartResult | None:
        """Makes the images of a container and of its volumes available.

        See `ImageManager.ensure_image`.
        """
        volumes = {volume.name: volume.image for volume in pod.spec.volumes or ()}
        wanted = [container]
        for mount in container.volume_mounts or ():
            if image := volumes.get(mount.name):
                policy = image.pull_policy
                wanted.append(container.replace(image=image.reference, image_pull_policy=policy))
        results = (self.manager.ensure_image(pod, each) for each in wanted)
        return next((result for result in results if result is not None), None)
