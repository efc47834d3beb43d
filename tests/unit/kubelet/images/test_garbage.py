"""Which images are removed. Cases of TestGarbageCollect* and TestDetectImages* of
pkg/kubelet/images, Kubernetes 1.36.
"""

from __future__ import annotations

import builtins
from pathlib import Path

from kcm import errors
from kcm.kubelet.images.garbage import ImageGarbageCollector, ImageLimits
from kcm.kubelet.images.store import Credentials, Image
from kcm.testing.clock import FakeClock

OLD = 200.0  # seconds, more than the age at which images may go


class Disk:
    """Images on a disk of 1000 bytes, of which others use `others`."""

    def __init__(self, *images: Image, others: int = 0) -> None:
        self.images = {image.id: image for image in images}
        self.others = others
        self.used: set[str] = set()
        self.refused: set[str] = set()
        self.events: list[str] = []
        self.clock = FakeClock()
        self.collector = ImageGarbageCollector(
            self, ImageLimits(), self.clock,
            report=lambda reason, text: self.events.append(f"{reason}: {text}"),
            measure=lambda _: (1000, 1000 - self.others - self._size()),
        )  # fmt: skip

    def _size(self) -> int:
        return sum(image.size for image in self.images.values())

    def find(self, name: str) -> Image | None:
        return self.images.get(name)

    def list_used(self) -> set[str]:
        return self.used

    def pull(self, name: str, credentials: Credentials | None) -> Image:
        raise errors.ImagePullFailed()

    def remove(self, image_id: str) -> None:
        if image_id in self.refused:
            raise errors.ContainerRuntimeError("in use")
        del self.images[image_id]

    def find_folder(self) -> Path:
        return Path("/")

    def collect(self) -> builtins.list[str]:
        """Collects after the images have become old enough; returns the ids of those left."""
        self.collector.collect()
        self.clock.step(OLD)
        self.collector.collect()
        return sorted(self.images)

    def list(self) -> builtins.list[Image]:
        return [*self.images.values()]


def image(id_: str, size: int = 100, *tags: str, pinned: bool = False) -> Image:
    return Image(id_, tags, size=size, pinned=pinned)


def test_below_the_high_watermark_nothing_goes() -> None:
    assert Disk(image("a"), image("b"), others=640).collect() == ["a", "b"]


def test_above_it_the_longest_unused_go_until_the_low_one() -> None:
    disk = Disk(image("a", 50), image("b", 50), image("c", 50))
    disk.clock.step(1)
    disk.used = {"b"}
    disk.collector.collect()
    disk.clock.step(1)
    disk.used = {"a"}
    disk.collector.collect()
    disk.clock.step(OLD)
    disk.used, disk.others = set(), 720
    disk.collector.collect()
    assert sorted(disk.images) == ["a"]
    assert disk.events == []


def test_what_is_used_pinned_or_new_stays() -> None:
    disk = Disk(
        image("a", 100, "app:1"), image("b", 100, pinned=True), image("c"), others=650
    )  # fmt: skip
    disk.used = {"app:1"}
    assert disk.collect() == ["a", "b"]
    disk.images["d"] = image("d")
    disk.collector.collect()
    assert sorted(disk.images) == ["a", "b", "d"]


def test_a_disk_that_is_full_of_other_things_is_told() -> None:
    disk = Disk(image("a"), others=850)
    assert disk.collect() == []
    assert disk.events[-1].startswith("FreeDiskSpaceFailed: Insufficient free disk space")
    assert "95% of 1000 bytes used" in disk.events[-1]
    assert "freed 100 bytes" in disk.events[-1]


def test_an_image_that_cannot_be_removed_holds_up_no_other() -> None:
    disk = Disk(image("a"), image("b"), others=700)
    disk.refused = {"a"}
    assert disk.collect() == ["a"]


def test_a_hundred_percent_means_never() -> None:
    disk = Disk(image("a"), others=890)
    disk.collector = ImageGarbageCollector(
        disk, ImageLimits(high=100), disk.clock, report=lambda *_: None,
        measure=lambda _: (1000, 1),
    )  # fmt: skip
    assert disk.collect() == ["a"]
