"""Removes images that nothing uses when the disk that they are on is nearly full.

Guarantees: no image is removed that a container of any kubelet uses, running or not, or that was
seen first less than `minimum_age` seconds ago. Those that were used longest ago go first.

Source: pkg/kubelet/images/image_gc_manager.go, Kubernetes 1.36. Departure: images are not removed
for their age alone.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.kubelet.images.store import Image, ImageStore

log = structlog.get_logger("kcm.kubelet")

PERIOD = 300.0  # seconds between two looks
_NEVER = 100  # percent

MeasureDisk = Callable[[Path], tuple[int, int]]
"""Returns the bytes in all, and those that are available, of a folder's file system."""


@dataclass(frozen=True)
class ImageLimits:
    """When images are removed: from `high` percent of the disk used, until `low` percent are.

    `minimum_age` is in seconds. 100 percent means never.
    """

    high: int = 85
    low: int = 80
    minimum_age: float = 120.0


@dataclass
class _Seen:
    """When an image was seen first, and used last. Times are those of the monotonic clock."""

    first: float
    used: float


def measure_disk(folder: Path) -> tuple[int, int]:
    """Returns the bytes in all, and those that are available, of a folder's file system."""
    usage = shutil.disk_usage(folder)
    return usage.total, usage.free


class ImageGarbageCollector:
    """Looks at the images of a node, again and again."""

    def __init__(
        self,
        store: ImageStore,
        limits: ImageLimits,
        clock: Clock,
        *,
        report: Callable[[str, str], None],
        measure: MeasureDisk = measure_disk,
    ) -> None:
        """`report` records a warning Event about the node, with its reason and its message."""
        self._store = store
        self._limits = limits
        self._clock = clock
        self._report = report
        self._measure = measure
        self._seen: dict[str, _Seen] = {}

    def run(self, stop: threading.Event) -> None:
        """Collects garbage until `stop` is set."""
        while not self._clock.wait(stop, PERIOD):
            try:
                self.collect()
            except (errors.ContainerRuntimeError, OSError) as error:
                self._report("ImageGCFailed", str(error))

    def collect(self) -> None:
        """Removes images, if there is need. Raises ContainerRuntimeError and OSError."""
        unused = self._find_unused()
        if self._limits.high >= _NEVER:
            return
        size, available = self._measure(self._store.find_folder())
        if size <= 0:
            self._report("InvalidDiskCapacity", "invalid capacity 0 on image filesystem")
            return
        used = 100 - min(available, size) * 100 // size
        if used < self._limits.high:
            return
        wanted = size * (100 - self._limits.low) // 100 - available
        freed = self._free(unused, wanted)
        if freed < wanted:
            self._report(
                "FreeDiskSpaceFailed",
                f"Insufficient free disk space on the node's image filesystem ({used}% of {size} "
                "bytes used). Failed to free sufficient space by deleting unused images (freed "
                f"{freed} bytes). Investigate disk usage, as it could be used by active images, "
                "logs, volumes, or other data.",
            )

    def _find_unused(self) -> list[Image]:
        """Returns the images that may be removed, in the order in which they go."""
        now = self._clock.monotonic()
        images, in_use = self._store.list(), self._store.list_used()
        self._seen = {
            image.id: self._seen.get(image.id, _Seen(first=now, used=0.0)) for image in images
        }
        unused = []
        for image in images:
            seen = self._seen[image.id]
            if in_use & {image.id, *image.tags, *image.digests}:
                seen.used = now
            elif not image.pinned and now - seen.first >= self._limits.minimum_age:
                unused.append(image)
        return sorted(unused, key=lambda image: (self._seen[image.id].used, image.id))

    def _free(self, unused: list[Image], wanted: int) -> int:
        """Removes images until so many bytes are free; returns how many are."""
        freed = 0
        for image in unused:
            if freed >= wanted:
                break
            try:
                self._store.remove(image.id)
            except errors.ContainerRuntimeError as error:
                log.warning("An image was not removed", image=image.id, error=str(error))
                continue
            log.info("Removed an image that nothing uses", image=image.id, names=image.tags)
            freed += image.size
        return freed
