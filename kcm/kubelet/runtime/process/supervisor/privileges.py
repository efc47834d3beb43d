"""Takes privileges from a process before it becomes a container's program. Linux only.

Everything that the program starts lacks them, too, and none of it can get them back.
"""

from __future__ import annotations

import ctypes
import os
import sys

from kcm.kubelet.runtime.process.wire import Fields, get_text

# From linux/prctl.h and linux/capability.h.
_BOUNDING_READ, _BOUNDING_DROP = 23, 24
_NO_NEW_PRIVILEGES = 38
_AMBIENT, _AMBIENT_CLEAR = 47, 4
_VERSION_3 = 0x20080522
_INHERITABLE = (2, 5)  # the words of that set: after effective and permitted, in two halves


def load_library(launch: Fields) -> ctypes.CDLL | None:
    """Returns the C library if the launch record takes privileges away, else None.

    The process has to load it before its limits and user are those of the container.
    """
    if sys.platform != "linux" or not ("capabilities" in launch or "no_new_privs" in launch):
        return None
    return ctypes.CDLL(None, use_errno=True)


def give_up_privileges(launch: Fields, library: ctypes.CDLL | None) -> None:
    """Reduces this process's capabilities to those of the launch record, and sets no_new_privs.

    What it can do now stays; the next exec takes the capabilities. Must come before the change of
    the user, which takes the right to reduce the bounding set. Raises OSError.
    """
    if library is None:
        return
    if "capabilities" in launch:
        _reduce_capabilities(library, int(get_text(launch, "capabilities")))
    if "no_new_privs" in launch:
        _check(library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))


def _reduce_capabilities(library: ctypes.CDLL, kept: int) -> None:
    """Takes all other capabilities from the bounding set, and empties the two sets that an exec
    inherits from.

    `kept` is a mask. A user that is not root cannot reduce the bounding set, and has no
    capabilities but those that it inherits.
    """
    number = 0
    while os.geteuid() == 0 and (held := library.prctl(_BOUNDING_READ, number, 0, 0, 0)) >= 0:
        if held and not kept >> number & 1:
            _check(library.prctl(_BOUNDING_DROP, number, 0, 0, 0))
        number += 1
    library.prctl(_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)  # fails where the kernel has no such set
    _empty_inheritable(library)


def _empty_inheritable(library: ctypes.CDLL) -> None:
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()
    _check(library.capget(header, sets))
    for word in _INHERITABLE:
        sets[word] = 0
    _check(library.capset(header, sets))


def _check(result: int) -> None:
    """Raises OSError if a function of the C library has failed."""
    if result:
        raise OSError(f"privileges could not be given up: {os.strerror(ctypes.get_errno())}")
