"""The user and groups that a container runs as, and whether the node allows them.

Source: pkg/kubelet/kuberuntime/security_context.go, Kubernetes 1.33. Departure: the node decides
which users and groups pods may have, because they are the machine's own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from kcm.errors import ContainerConfigError
from kcm.kubelet.cri import ContainerConfig
from kcm.kubelet.files.groups import primary_group
from kcm.kubelet.runtime.process.options import ProcessOptions


@dataclass(frozen=True)
class Identity:
    """The user and group ids of a container's processes. `groups` are the supplementary ones."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    @property
    def own(self) -> bool:
        """Whether these are the kubelet's own user and group."""
        return (self.uid, self.gid, self.groups) == (os.geteuid(), os.getegid(), ())

    def reads(self, status: os.stat_result) -> bool:
        """Reports whether a file's permission bits let this user read the file."""
        if self.uid in (0, status.st_uid):
            return self.uid == 0 or bool(status.st_mode & 0o400)
        if status.st_gid in (self.gid, *self.groups):
            return bool(status.st_mode & 0o040)
        return bool(status.st_mode & 0o004)


def identity_of(config: ContainerConfig) -> Identity:
    """Returns the container's user and groups.

    The user defaults to the kubelet's, the group to the user's primary group.
    """
    uid = os.geteuid() if config.run_as_user is None else config.run_as_user
    gid = primary_group(uid) if config.run_as_group is None else config.run_as_group
    return Identity(uid, gid, tuple(config.supplemental_groups))


def check_user(config: ContainerConfig, options: ProcessOptions) -> None:
    """Checks the container's user and groups.

    Raises ContainerConfigError for one that the options do not allow, and for others than the
    kubelet's own if the kubelet is not root.
    """
    wanted, own = identity_of(config), os.geteuid()
    if not options.allows_user(wanted.uid, own):
        raise ContainerConfigError(
            f"container {config.name} wants to run as user {wanted.uid} (runAsUser), which this "
            "node does not allow (--allowed-users)"
        )
    group = primary_group(wanted.uid)
    for gid, field in ((wanted.gid, "runAsGroup"), *((g, "a group") for g in wanted.groups)):
        if gid != group and not options.allows_group(gid):
            raise ContainerConfigError(
                f"container {config.name} wants group {gid} ({field}), which this node does not "
                "allow (--allowed-groups)"
            )
    if not wanted.own and own != 0:
        raise ContainerConfigError(
            f"container {config.name} wants another user or group than the kubelet's, "
            "which only a kubelet that runs as root can give"
        )
