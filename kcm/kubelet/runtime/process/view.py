"""What a container sees: its folder, its mounts in it, its environment.

There is no file system of its own: a container is a plain process. Its folder (KCM_ROOT)
takes the place of a root file system: a volume that is mounted at /data is the
symbolic link $KCM_ROOT/data. `$(KCM_ROOT)` and `$(POD_IP)` in command, arguments,
variables and working folder are replaced here, since only here they are known.
"""

from __future__ import annotations

import itertools
import os
import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.cri import ContainerConfig, Mount
from kcm.kubelet.files import beneath

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MARK = "KCM_CONTAINER_ID"  # by which a container's processes are known
TERMINATION_LOG = "termination-log"  # in the container's folder, beside its root


def without_nul(words: Iterable[str]) -> list[str]:
    """The words, none of which may hold a NUL: a program's start cannot carry it.

    Raises ContainerRuntimeError.
    """
    found = list(words)
    if any("\0" in word for word in found):
        raise ContainerRuntimeError("a command or variable contains a NUL byte")
    return found


def inside(root: Path, path: str) -> Path:
    """Where a path of the container is on the host; never outside the root folder."""
    return root / _clean(path).lstrip("/")


def _clean(path: str) -> str:
    """Absolute, without `..`; POSIX keeps two slashes at the beginning, which mean nothing here."""
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")


@dataclass(frozen=True)
class View:
    """One container's view, in its root folder."""

    root: Path
    config: ContainerConfig
    container_id: str
    hostname: str
    pod_ip: str

    def lay_out(self) -> None:
        """Make the folder, its mounts, the termination message's file and the working folder.

        Raises ContainerRuntimeError for mounts that cannot be shown this way.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        mounts = [*self.config.mounts, *self._own_mounts()]
        check_mounts(mounts)
        for mount in mounts:
            self._show(mount)
        self._make_working_dir()

    def _make_working_dir(self) -> None:
        """In the container's folder, or in a volume that it may write to; nowhere else."""
        path = Path(self.working_dir)
        if not path.is_relative_to(self.root):
            return
        inner = _clean(str(path.relative_to(self.root)))
        for mount in self.config.mounts:
            outer = _clean(mount.container_path)
            if inner == outer or inner.startswith(f"{outer}/"):
                if not mount.read_only:
                    root = mount.root or mount.host_path
                    rest = os.path.relpath(mount.host_path, root) + inner[len(outer) :]
                    beneath.make_folder(Path(root), rest)
                return
        beneath.make_folder(self.root, inner)

    def _show(self, mount: Mount) -> None:
        link = inside(self.root, mount.container_path)
        if link == self.root:
            raise ContainerRuntimeError("nothing can be mounted at /: there is no root file system")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(mount.host_path)

    def _own_mounts(self) -> list[Mount]:
        """The termination message's file: beside the root folder, where no other user can
        put a link to something else in its place."""
        if not self.has_own_message:
            return []
        self.termination_file.touch(mode=0o600)
        return [Mount(str(self.termination_file), self.config.termination_message_path)]

    @property
    def has_own_message(self) -> bool:
        """Whether the termination message has a file of its own: no mount is at its path."""
        return bool(self.config.termination_message_path) and self._message_mount() is None

    def _message_mount(self) -> Mount | None:
        wanted = _clean(self.config.termination_message_path)
        mounts = self.config.mounts
        return next((one for one in mounts if _clean(one.container_path) == wanted), None)

    @property
    def termination_file(self) -> Path:
        """Where the message is written; a mount at its path is followed to the host's file."""
        mount = self._message_mount()
        return Path(mount.host_path) if mount else self.root.parent / TERMINATION_LOG

    def termination_place(self) -> tuple[Path, str] | None:
        """The folder below which the message is read, and its path there."""
        if not self.config.termination_message_path:
            return None
        mount, file = self._message_mount(), self.termination_file
        root = mount.root if mount and mount.root else str(file.parent)
        return Path(root), os.path.relpath(file, root)

    @property
    def working_dir(self) -> str:
        """The container's folder; else the named one: a mount's, the host's, or a new one."""
        named = self.filled(self.config.working_dir)
        if not named:
            return str(self.root)
        named = _clean(named)
        if Path(named).is_relative_to(self.root):
            return named
        own = inside(self.root, named)
        return named if not own.exists() and Path(named).is_dir() else str(own)

    def read_only(self) -> list[str]:
        """What it may read and not write. Where something that it may write is inside, or
        around it, that is left as it is: both are the same files of the host."""
        writable = [mount.host_path for mount in self.config.mounts if not mount.read_only]
        taken = [os.path.realpath(path) for path in (*writable, str(self.root.parent))]
        wanted = [os.path.realpath(one.host_path) for one in self.config.mounts if one.read_only]
        return [path for path in wanted if not any(_overlap(path, other) for other in taken)]

    def argv(self) -> list[str]:
        """What to execute. Raises ContainerRuntimeError when the pod names no command."""
        found = [self.filled(word) for word in (*self.config.command, *self.config.args)]
        if not found:
            raise ContainerRuntimeError(
                "no command specified: images are not run here, "
                "so a container needs command or args"
            )
        return without_nul(found)

    def environment(self) -> dict[str, str]:
        """The variables: few of the system's, then the container's own."""
        found = {
            "PATH": os.environ.get("PATH", DEFAULT_PATH),
            "HOME": str(self.root),
            "HOSTNAME": self.hostname,
            "POD_IP": self.pod_ip,
        }
        if self.config.tty:
            found["TERM"] = "xterm"
        found.update((name, self.filled(value)) for name, value in self.config.env)
        found.update({"KCM_ROOT": str(self.root), MARK: self.container_id})
        if self.config.termination_message_path:
            found["KCM_TERMINATION_LOG"] = str(self.termination_file)
        without_nul(found.values())
        return found

    def filled(self, text: str) -> str:
        """The text with the references that only the runtime can resolve."""
        return text.replace("$(KCM_ROOT)", str(self.root)).replace("$(POD_IP)", self.pod_ip)


def _overlap(one: str, other: str) -> bool:
    return os.path.commonpath([one, other]) in (one, other)


def check_mounts(mounts: Sequence[Mount]) -> None:
    """Refuse mounts of the same path, and mounts inside others: a link would be made in a volume.

    Raises ContainerRuntimeError.
    """
    paths = sorted(_clean(mount.container_path) for mount in mounts)
    for outer, inner in itertools.pairwise(paths):
        if outer == inner:
            raise ContainerRuntimeError(f"two mounts at {inner}")
    for outer in paths:
        for inner in paths:
            if inner.startswith(f"{outer}/"):
                raise ContainerRuntimeError(
                    f"the mount {inner} lies inside the mount {outer}, "
                    "which needs mount namespaces and is not possible here"
                )
