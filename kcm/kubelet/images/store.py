"""The interface between the kubelet and the images of a container runtime.

Source: the ImageService in staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto, Kubernetes
1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class ImageUser:
    """The user that an image runs as: a number, a name, or neither, which is unknown."""

    uid: int | None = None
    name: str = ""


@dataclass(frozen=True)
class Image:
    """An image of this node. `size` is in bytes. A pinned image is never removed."""

    id: str
    tags: Sequence[str] = ()
    digests: Sequence[str] = ()
    size: int = 0
    user: ImageUser = ImageUser()
    pinned: bool = False


@dataclass(frozen=True)
class Credentials:
    """Who pulls an image. Empty fields are not used."""

    username: str = ""
    password: str = ""
    identity_token: str = ""
    registry_token: str = ""


class ImageStore(Protocol):
    """The images of a node. Any thread may make any call. Raises ContainerRuntimeError."""

    def find(self, name: str) -> Image | None:
        """Returns the image of that name, digest or id, None if it is not on this node."""
        ...

    def list(self) -> list[Image]: ...

    def list_used(self) -> set[str]:
        """Returns ids, digests and names of the images that containers use, whoever made them, and
        of the sandboxes' image.
        """
        ...

    def pull(self, name: str, credentials: Credentials | None) -> Image:
        """Pulls an image. Raises ImagePullFailed."""
        ...

    def remove(self, image_id: str) -> None:
        """Removes an image. One that is gone is no error."""
        ...

    def find_folder(self) -> Path:
        """Returns a folder of the file system that images are on."""
        ...
