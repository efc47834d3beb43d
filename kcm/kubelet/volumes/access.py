"""Permissions of a pod's folder, for the kubelet and the users of the pod's containers.

Guarantees: the kubelet stays the owner of the folder, so that nobody else can change its entries.
Where the file system has no access control lists, and the users of a pod have different primary
groups, all users of the machine can reach the pod's volumes.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Collection
from pathlib import Path

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.security import PodSecurityContext
from kcm.helpers.pods import list_containers
from kcm.kubelet.files.groups import primary_group

_NAME, _VERSION, _NO_ID = "system.posix_acl_access", 2, 0xFFFF_FFFF
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20  # of linux/posix_acl.h
_ALL, _SEARCH, _NONE = 7, 1, 0
_UNKNOWN = (errno.ENOTSUP, errno.EOPNOTSUPP)


def users_of(pod: Pod) -> set[int]:
    """Returns the ids of the users that the pod's containers run as, where the spec sets them."""
    of_pod = (pod.spec.security_context or PodSecurityContext()).run_as_user
    users: set[int | None] = set()
    for container in list_containers(pod.spec):
        own = container.security_context.run_as_user if container.security_context else None
        users.add(of_pod if own is None else own)
    return {user for user in users if user is not None}


def let_through(folder: Path, users: Collection[int]) -> None:
    """Lets these users, and no others, access paths below a folder of ours. They cannot list it.

    If the file system has no access control lists, a group or all users may get access.
    """
    others = sorted(set(users) - {os.geteuid()})
    if not others or os.geteuid() != 0:
        folder.chmod(0o700)
        return
    try:
        os.setxattr(folder, _NAME, _pack_acl(others))
    except (OSError, AttributeError) as error:  # macOS has no setxattr
        if isinstance(error, OSError) and error.errno not in _UNKNOWN:
            raise
        groups = {primary_group(user) for user in others}
        os.chown(folder, -1, min(groups))
        folder.chmod(0o710 if len(groups) == 1 else 0o711)


def _pack_acl(users: Collection[int]) -> bytes:
    entries = [
        (_OWNER, _ALL, _NO_ID),
        *((_USER, _SEARCH, user) for user in users),
        (_GROUP, _NONE, _NO_ID),
        (_MASK, _SEARCH, _NO_ID),
        (_OTHER, _NONE, _NO_ID),
    ]
    return struct.pack("<I", _VERSION) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
