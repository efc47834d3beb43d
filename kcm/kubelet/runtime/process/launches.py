"""The launch record: what a supervisor needs to start its container."""

from __future__ import annotations

import os

from kcm.kubelet.cri import ContainerConfig
from kcm.kubelet.files import beneath
from kcm.kubelet.runtime.process import capabilities, cgroups
from kcm.kubelet.runtime.process.cgroups import Cgroups
from kcm.kubelet.runtime.process.container_root import TERMINATION_LOG, ContainerRoot
from kcm.kubelet.runtime.process.held import HeldContainer
from kcm.kubelet.runtime.process.options import ProcessOptions
from kcm.kubelet.runtime.process.users import check_user, identity_of

Launch = list[tuple[str, str]]


def launch_of(container: HeldContainer, groups: Cgroups, options: ProcessOptions) -> Launch:
    """Returns the launch record, and creates the container's control group.

    Raises ContainerConfigError for a user or group that is not allowed, ContainerRuntimeError and
    OSError.
    """
    view, config = container.view, container.record.config
    check_user(config, options)  # again: the options may have changed since its creation
    available = capabilities.read_available()
    capabilities.check(config, available, root=os.geteuid() == 0)
    environment = [("env", f"{name}={value}") for name, value in view.environment().items()]
    return [
        *(("argv", word) for word in view.argv()),
        *environment,
        ("cwd", view.working_dir),
        *(("read_only", path) for path in view.read_only()),
        *_secrets(view),
        ("log", container.record.log_path),
        ("log_max_size", str(options.container_log_max_size)),
        ("log_max_files", str(options.container_log_max_files)),
        ("tty", _flag(config.tty)),
        ("stdin", _flag(config.stdin)),
        ("stdin_once", _flag(config.stdin_once)),
        *_user(container),
        *build_privileges(config, available),
        *_limits(container, groups, options),
    ]


def _flag(value: bool) -> str:
    return "1" if value else "0"


def _secrets(view: ContainerRoot) -> Launch:
    """Returns the fields of the mounts below /run/secrets."""
    read_only: set[str] = set(view.read_only())
    fields: Launch = []
    for mount, target in view.secret_mounts():
        fields += [
            ("secret_source", mount.host_path),
            ("secret_root", mount.root or mount.host_path),
            ("secret_target", target),
            ("secret_read_only", _flag(os.path.realpath(mount.host_path) in read_only)),
        ]
    return fields


def _user(container: HeldContainer) -> Launch:
    """Returns the user's fields, and makes the user the owner of the container's folder.

    The file of the termination message gets the same owner.
    """
    wanted = identity_of(container.record.config)
    if wanted.own:
        return []
    if os.geteuid() == 0:
        beneath.hand_over(container.view.root, wanted.uid, wanted.gid)
        if container.view.has_own_message:
            beneath.hand_over_file(container.folder, TERMINATION_LOG, wanted.uid, wanted.gid)
    groups = [("group", str(gid)) for gid in wanted.groups]
    return [("gid", str(wanted.gid)), *groups, ("uid", str(wanted.uid))]


def build_privileges(config: ContainerConfig, available: int) -> Launch:
    """Returns the fields that say which privileges the container's processes give up.

    `available` is the mask of the capabilities that the kubelet can give. One that is not root can
    take none from programs of root's (setuid): where a container drops some, it gets none that way.
    """
    no_new_privileges = [("no_new_privs", "1")]
    if config.privileged:
        return no_new_privileges if config.no_new_privileges else []
    kept = ("capabilities", str(capabilities.find_kept_capabilities(config, available)))
    forbids = config.no_new_privileges or (config.drop_capabilities and not available)
    return [kept, *no_new_privileges] if forbids else [kept]


def _limits(container: HeldContainer, groups: Cgroups, options: ProcessOptions) -> Launch:
    resources = container.record.config.resources
    limits: Launch = []
    if resources.oom_score_adj is not None:
        limits.append(("oom_score_adj", str(resources.oom_score_adj)))
    pids = resources.pids or options.pod_max_pids
    if pids and not groups.counts_processes and not identity_of(container.record.config).own:
        limits.append(("rlimit_nproc", str(pids)))  # the kernel counts them by user
    if groups.kind == cgroups.NONE:
        if resources.memory_bytes is not None:
            limits.append(("rlimit_data", str(resources.memory_bytes)))
        return limits
    made = groups.make(container.record.cgroup, resources)
    return [*limits, *(("cgroup", str(group)) for group in made)]
