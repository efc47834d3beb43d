"""The root folder of a container, its mounts, its command and its environment.

A container is a plain process without a file system of its own. Its folder (KCM_ROOT) takes the
place of a root file system: a volume that is mounted at /data is the symbolic link $KCM_ROOT/data.
References `$(KCM_ROOT)` and `$(POD_IP)` in command, arguments, variables and working folder are
replaced here, where their values are known.
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
MARK = "KCM_CONTAINER_ID"  # the variable that identifies a container's processes
SECRETS = "/run/secrets"  # of the machine; /var/run is a link to /run
TERMINATION_LOG = "termination-log"  # in the container's folder, beside its root


def without_nul(words: Iterable[str]) -> list[str]:
    """Returns the words as a list. Raises ContainerRuntimeError if one contains a NUL byte."""
    checked = list(words)
    if any("\0" in word for word in checked):
        raise ContainerRuntimeError("a command or variable contains a NUL byte")
    return checked


def inside(root: Path, path: str) -> Path:
    """Returns the host's path for a path of the container, which is always in the root folder."""
    return root / _clean(path).lstrip("/")


def _clean(path: str) -> str:
    """Returns an absolute path without `..` and with only one slash at its beginning."""
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")


@dataclass(frozen=True)
class ContainerRoot:
    """The root folder of one container, and what is computed from it."""

    root: Path
    config: ContainerConfig
    container_id: str
    hostname: str
    pod_ip: str

    def lay_out(self) -> None:
        """Creates the folder, its mounts, the termination message's file and the working folder.

        Raises ContainerRuntimeError for mounts that are not possible without a file system of its
        own.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        mounts = [*self.config.mounts, *self._own_mounts()]
        check_mounts(mounts)
        for mount in mounts:
            self._show(mount)
        self._make_working_dir()

    def _make_working_dir(self) -> None:
        """Creates the working folder if it is in the root folder or in a writable volume."""
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
        """Creates the file of the termination message, and returns its mount.

        The file is beside the root folder, where no other user can replace it by a link.
        """
        if not self.has_own_message:
            return []
        self.termination_file.touch(mode=0o600)
        return [Mount(str(self.termination_file), self.config.termination_message_path)]

    @property
    def has_own_message(self) -> bool:
        """Whether the termination message has a file of its own, since no mount is at its path."""
        return bool(self.config.termination_message_path) and self._message_mount() is None

    def _message_mount(self) -> Mount | None:
        wanted = _clean(self.config.termination_message_path)
        mounts = self.config.mounts
        return next((mount for mount in mounts if _clean(mount.container_path) == wanted), None)

    @property
    def termination_file(self) -> Path:
        """The file of the termination message: its own, or that of the mount at its path."""
        mount = self._message_mount()
        return Path(mount.host_path) if mount else self.root.parent / TERMINATION_LOG

    def termination_place(self) -> tuple[Path, str] | None:
        """Returns the folder below which the termination message is read, and its path there.

        Returns None if the container has no path for it.
        """
        if not self.config.termination_message_path:
            return None
        mount, file = self._message_mount(), self.termination_file
        root = mount.root if mount and mount.root else str(file.parent)
        return Path(root), os.path.relpath(file, root)

    @property
    def working_dir(self) -> str:
        """The container's working folder: that of its config, or the root folder.

        A folder that exists on the host, and not in the root folder, is used as it is.
        """
        named = self.fill_references(self.config.working_dir)
        if not named:
            return str(self.root)
        named = _clean(named)
        if Path(named).is_relative_to(self.root):
            return named
        own = inside(self.root, named)
        return named if not own.exists() and Path(named).is_dir() else str(own)

    def read_only(self) -> list[str]:
        """Returns the paths of the host that must be read-only for the container.

        A read-only mount is left out if a writable path contains it or is in it, because both are
        the same files of the host.
        """
        writable = [mount.host_path for mount in self.config.mounts if not mount.read_only]
        taken = [os.path.realpath(path) for path in (*writable, str(self.root.parent))]
        wanted = [
            os.path.realpath(mount.host_path) for mount in self.config.mounts if mount.read_only
        ]
        return [path for path in wanted if not any(_overlap(path, other) for other in taken)]

    def secret_mounts(self) -> list[tuple[Mount, str]]:
        """Returns the mounts below /var/run/secrets, and the path that each has for programs.

        Programs look for them at these very paths, not below the root folder.
        """
        return [
            (mount, SECRETS + path.removeprefix(prefix))
            for mount in self.config.mounts
            for path in (_clean(mount.container_path),)
            for prefix in (SECRETS, f"/var{SECRETS}")
            if path.startswith(f"{prefix}/")
        ]

    def argv(self) -> list[str]:
        """Returns the command and its arguments.

        Raises ContainerRuntimeError if there is no command.
        """
        argv = [self.fill_references(word) for word in (*self.config.command, *self.config.args)]
        if not argv:
            raise ContainerRuntimeError(
                "no command specified: images are not run here, "
                "so a container needs command or args"
            )
        return without_nul(argv)

    def environment(self) -> dict[str, str]:
        """Returns the environment variables: a few of the system's, then the container's own.

        Raises ContainerRuntimeError if one contains a NUL byte.
        """
        variables = {
            "PATH": os.environ.get("PATH", DEFAULT_PATH),
            "HOME": str(self.root),
            "HOSTNAME": self.hostname,
            "POD_IP": self.pod_ip,
        }
        if self.config.tty:
            variables["TERM"] = "xterm"
        variables.update((name, self.fill_references(value)) for name, value in self.config.env)
        variables.update({"KCM_ROOT": str(self.root), MARK: self.container_id})
        if self.config.termination_message_path:
            variables["KCM_TERMINATION_LOG"] = str(self.termination_file)
        without_nul(variables.values())
        return variables

    def fill_references(self, text: str) -> str:
        """Returns the text with the references to KCM_ROOT and POD_IP replaced."""
        return text.replace("$(KCM_ROOT)", str(self.root)).replace("$(POD_IP)", self.pod_ip)


def _overlap(path: str, other: str) -> bool:
    return os.path.commonpath([path, other]) in (path, other)


def check_mounts(mounts: Sequence[Mount]) -> None:
    """Raises ContainerRuntimeError for two mounts at one path, or for a mount inside another one.

    A mount inside another one would need a link within a volume.
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
