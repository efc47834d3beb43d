"""Pods' own addresses out of 127.64.0.0/10, which Linux answers without any set-up.

Guarantees: no two pods of one user of the machine have the same address, whichever kubelets run
them, restarted or not. An address is a symbolic link in a folder that these kubelets share, named
after the address and leading to the sandbox's folder; once that folder is gone the address is free,
even if nobody released it.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path

from kcm.apimachinery.loopback import POD_NETWORK
from kcm.errors import ContainerRuntimeError

# Users cannot see each other's folders: they begin at different places.
_SPREAD = 2_654_435_761


def shared_folder() -> Path:
    """Returns the folder in which the kubelets of this user keep their pods' addresses."""
    return Path(tempfile.gettempdir()) / f"kcm-pod-addresses-{os.geteuid()}"


def available() -> bool:
    """Reports whether this machine answers on every loopback address."""
    with socket.socket() as probe:
        try:
            probe.bind((str(POD_NETWORK[1]), 0))
        except OSError:
            return False
    return True


class Addresses:
    """The addresses that sandboxes have. Safe for threads and processes."""

    def __init__(self, folder: Path, network: IPv4Network = POD_NETWORK) -> None:
        self._folder = folder
        self._network = network
        self._size = network.num_addresses - 2
        self._next = (os.geteuid() * _SPREAD) % self._size

    def take(self, sandbox: Path) -> str:
        """Returns the next free address, recorded for the sandbox's folder, which must exist.

        Raises ContainerRuntimeError if all are taken or the shared folder is another user's.
        """
        with self._lock_folder():
            for _ in range(self._size):
                address = str(self._network[1 + self._next])
                self._next = (self._next + 1) % self._size
                if self._record(address, sandbox):
                    return address
        raise ContainerRuntimeError(f"all addresses of {self._network} are taken")

    def release(self, address: str, sandbox: Path) -> None:
        """Frees an address if it is still this sandbox's."""
        link = self._folder / address
        with self._lock_folder():
            if link.is_symlink() and os.readlink(link) == str(sandbox):
                link.unlink()

    def _record(self, address: str, sandbox: Path) -> bool:
        link = self._folder / address
        if link.is_symlink():
            if link.exists():
                return False
            link.unlink()
        link.symlink_to(sandbox)
        return True

    @contextmanager
    def _lock_folder(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = self._folder.lstat()  # anybody may put a link there before us
        if seen.st_uid != os.geteuid() or not stat.S_ISDIR(seen.st_mode):
            raise ContainerRuntimeError(f"{self._folder} belongs to another user")
        with open(self._folder / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
