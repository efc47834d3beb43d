"""core/v1: who the processes of a pod run as, and how they are confined.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.apimachinery.base import Bool, Int64, Model


class SELinuxOptions(Model):
    """The SELinux label of a process."""

    user: str | None = None
    role: str | None = None
    type: str | None = None
    level: str | None = None


class WindowsSecurityContextOptions(Model):
    """Settings of processes on Windows."""

    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: Bool | None = None


class SeccompProfile(Model):
    """Which system calls are filtered."""

    type: str = ""
    localhost_profile: str | None = None


class AppArmorProfile(Model):
    """Which AppArmor profile confines a process."""

    type: str = ""
    localhost_profile: str | None = None


class Sysctl(Model):
    """A kernel parameter to set."""

    name: str = ""
    value: str = ""


class Capabilities(Model):
    """Capabilities to add and to drop."""

    add: list[str] | None = None
    drop: list[str] | None = None


class PodSecurityContext(Model):
    """Users, groups and confinement of all containers of a pod."""

    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: Bool | None = None
    supplemental_groups: list[Int64] | None = None
    supplemental_groups_policy: str | None = None
    fs_group: Int64 | None = None
    sysctls: list[Sysctl] | None = None
    fs_group_change_policy: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    se_linux_change_policy: str | None = None


class SecurityContext(Model):
    """User, group and confinement of one container; it goes before the pod's."""

    capabilities: Capabilities | None = None
    privileged: Bool | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: Bool | None = None
    read_only_root_filesystem: Bool | None = None
    allow_privilege_escalation: Bool | None = None
    proc_mount: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
