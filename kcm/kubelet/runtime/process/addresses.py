"""Gives pods addresses of their own from 127.64.0.0/10, which Linux answers without any set-up.

Guarantees: no two pods of one user of the machine have the same address, even if several kubelets
run them or are restarted. An address is a symbolic link in a folder that these kubelets share: its
name is the address, and it leads to the sandbox's folder. Once that folder is gone the address is
free, even if nobody released it.
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

# Users cannot see each other's folders, so they begin at different addresses.
_SPREAD = 2_654_435_761


def shared_folder() -> Path:
    """Returns the folder in which the kubelets of this user record their pods' addresses."""
    return Path(tempfile.gettempdir()) / f"kcm-pod-addresses-{os.geteuid()}"


def available() -> bool:
    """Reports whether this machine answers on all loopback addresses."""
    with socket.socket() as probe:
        try:
            probe.bind((str(POD_NETWORK[1]), 0))
        except OSError:
            return False
    return True


class Addresses:
    """The addresses that sandboxes have. Thread-safe, and safe for several processes."""

    def __init__(self, folder: Path, network: IPv4Network = POD_NETWORK) -> None:
        self._folder = folder
        self._network = network
        self._size = network.num_addresses - 2
        self._next = (os.geteuid() * _SPREAD) % self._size

    def take(self, sandbox: Path) -> str:
        """Takes the next free address for the sandbox's folder, which must exist, and returns it.

        Raises ContainerRuntimeError if all are taken or the shared folder belongs to another user.
        """
        with self._lock_folder():
            for _ in range(self._size):
                address = str(self._network[1 + self._next])
                self._next = (self._next + 1) % self._size
                if self._record(address, sandbox):
                    return address
        raise ContainerRuntimeError(f"all addresses of {self._network} are taken")

    def release(self, address: str, sandbox: Path) -> None:
        """Frees the address if it still belongs to this sandbox."""
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
        seen = self._folder.lstat()  # others could have put a link there before
        if seen.st_uid != os.geteuid() or not stat.S_ISDIR(seen.st_mode):
            raise ContainerRuntimeError(f"{self._folder} belongs to another user")
        with open(self._folder / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
