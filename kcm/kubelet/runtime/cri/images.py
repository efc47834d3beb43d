"""Implements images.store.ImageStore with a container runtime that speaks CRI v1.

Source: staging/src/k8s.io/cri-client/pkg/remote_image.go, Kubernetes 1.36.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from kcm import errors
from kcm.kubelet.images.store import Credentials, Image, ImageUser
from kcm.kubelet.runtime.cri.channel import CallFailed, RuntimeChannel
from kcm.kubelet.runtime.cri.messages import Message


class CRIImages:
    """The images of a container runtime. Thread-safe."""

    def __init__(self, channel: RuntimeChannel) -> None:
        self._channel = channel

    def find(self, name: str) -> Image | None:
        answer = self._channel.call("ImageStatus", image={"image": name})
        return _convert(answer.image) if answer.HasField("image") else None

    def list(self) -> list[Image]:
        return [_convert(image) for image in self._channel.call("ListImages").images]

    def list_used(self) -> set[str]:
        used = {self._find_sandbox_image()}
        for container in self._channel.call("ListContainers").containers:
            used |= {container.image_ref, container.image_id, container.image.image}
        return used - {""}

    def _find_sandbox_image(self) -> str:
        """Returns the image of sandboxes, which containerd pins since version 1.7 only."""
        info = self._channel.call("Status", verbose=True).info
        try:
            return str(json.loads(info["config"]).get("sandboxImage") or "")
        except (KeyError, ValueError, AttributeError):
            return ""  # the runtime says nothing, and has to pin it

    def pull(self, name: str, credentials: Credentials | None) -> Image:
        fields = {"auth": asdict(credentials)} if credentials is not None else {}
        try:
            # How long a pull takes depends on the image, so it has no deadline, as upstream.
            answer = self._channel.call("PullImage", None, image={"image": name}, **fields)
        except CallFailed as error:
            raise errors.ImagePullFailed(error.message) from error
        pulled = self.find(answer.image_ref)
        if pulled is None:
            raise errors.ImagePullFailed(f"{name} was pulled, and is gone")
        return pulled

    def remove(self, image_id: str) -> None:
        self._channel.call("RemoveImage", image={"image": image_id})

    def find_folder(self) -> Path:
        filesystems = self._channel.call("ImageFsInfo").image_filesystems
        if not filesystems:
            raise errors.ContainerRuntimeError("the runtime does not say where its images are")
        return Path(filesystems[0].fs_id.mountpoint)


def _convert(image: Message) -> Image:
    uid = image.uid.value if image.HasField("uid") else None
    # What names no user runs as root.
    user = ImageUser(uid, image.username) if uid is not None or image.username else ImageUser(0)
    return Image(
        id=image.id,
        tags=tuple(image.repo_tags),
        digests=tuple(image.repo_digests),
        size=image.size,
        user=user,
        pinned=image.pinned,
    )
