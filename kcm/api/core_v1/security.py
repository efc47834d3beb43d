"""core/v1: the security settings of pods and containers.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.apimachinery.base import Bool, Int64, Model


class SELinuxOptions(Model):
    """The SELinux label of a container's processes."""

    user: str | None = None
    role: str | None = None
    type: str | None = None
    level: str | None = None


class WindowsSecurityContextOptions(Model):
    """Security settings for containers on Windows."""

    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: Bool | None = None


class SeccompProfile(Model):
    """The seccomp profile that filters a container's system calls."""

    type: str = ""
    localhost_profile: str | None = None


class AppArmorProfile(Model):
    """The AppArmor profile that confines a container's processes."""

    type: str = ""
    localhost_profile: str | None = None


class Sysctl(Model):
    """A kernel parameter to set for a pod."""

    name: str = ""
    value: str = ""


class Capabilities(Model):
    """Linux capabilities that a container gets or loses."""

    add: list[str] | None = None
    drop: list[str] | None = None


class PodSecurityContext(Model):
    """Security settings for all containers of a pod."""

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
    """Security settings for one container. They override those of the pod."""

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
