"""What a supervisor is told of its container."""

from __future__ import annotations

import os

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.runtime.process import cgroups
from kcm.kubelet.runtime.process.cgroups import Cgroups
from kcm.kubelet.runtime.process.held import HeldContainer
from kcm.kubelet.runtime.process.options import ProcessOptions

Launch = list[tuple[str, str]]


def launch_of(container: HeldContainer, groups: Cgroups, options: ProcessOptions) -> Launch:
    """The launch record; makes the container's control group.

    Raises ContainerRuntimeError for a user that may not be taken.
    """
    view, config = container.view, container.record.config
    environment = [("env", f"{name}={value}") for name, value in view.environment().items()]
    return [
        *(("argv", word) for word in view.argv()),
        *environment,
        ("cwd", view.working_dir),
        *(("read_only", path) for path in view.read_only()),
        ("log", container.record.log_path),
        ("log_max_size", str(options.container_log_max_size)),
        ("log_max_files", str(options.container_log_max_files)),
        ("tty", _flag(config.tty)),
        ("stdin", _flag(config.stdin)),
        ("stdin_once", _flag(config.stdin_once)),
        *_user(container, options),
        *_limits(container, groups),
    ]


def _flag(value: bool) -> str:
    return "1" if value else "0"


def _user(container: HeldContainer, options: ProcessOptions) -> Launch:
    config, own = container.record.config, os.geteuid()
    uid = own if config.run_as_user is None else config.run_as_user
    gid = uid if config.run_as_group is None else config.run_as_group
    if uid == own and config.run_as_group in (None, os.getegid()):
        return []
    if not options.allows_user(uid, own):
        raise ContainerRuntimeError(
            f"container {config.name} wants to run as user {uid}, which this node does not allow"
        )
    if own == 0:
        for path in (container.view.root, container.view.termination_file):
            if path.exists():
                os.chown(path, uid, gid, follow_symlinks=False)
    return [("gid", str(gid)), ("uid", str(uid))]


def _limits(container: HeldContainer, groups: Cgroups) -> Launch:
    resources = container.record.config.resources
    found: Launch = []
    if resources.oom_score_adj is not None:
        found.append(("oom_score_adj", str(resources.oom_score_adj)))
    if groups.kind == cgroups.NONE:
        if resources.memory_bytes is not None:
            found.append(("rlimit_data", str(resources.memory_bytes)))
        return found
    made = groups.make(container.record.cgroup, resources)
    return [*found, *(("cgroup", str(group)) for group in made)]
