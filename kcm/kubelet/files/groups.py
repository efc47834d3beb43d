"""The group of a user on this machine, for processes and files that are given to the user."""

from __future__ import annotations

import grp
import os
import pwd

NOBODY_GROUP = 65534  # for a user who has no group of their own


def primary_group(uid: int) -> int:
    """Returns the group id of a user.

    The kubelet's own user has the kubelet's group, and a user with an account has the account's.
    Most users of pods have no account: their group has their own number, or is NOBODY_GROUP if that
    number is taken by a group of the machine.
    """
    if uid == os.geteuid():
        return os.getegid()
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        pass  # no account
    try:
        grp.getgrgid(uid)
    except KeyError:
        return uid
    return NOBODY_GROUP
