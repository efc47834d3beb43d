"""The kubelet's root folder, which only one kubelet at a time may use."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from kcm import errors

_MODE = 0o711  # pods' processes can reach their own folders in it, but cannot list it


def lock_root_dir(root_dir: Path) -> IO[str]:
    """Creates the folder if needed and locks it. Closing the returned file unlocks it.

    Raises ConfigurationError if another kubelet has locked it.
    """
    root_dir.mkdir(parents=True, exist_ok=True, mode=_MODE)
    file = (root_dir / "kubelet.lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise errors.ConfigurationError(
            f"another kubelet uses {root_dir}; --root-dir names another folder"
        ) from None
    os.set_inheritable(file.fileno(), False)
    return file
