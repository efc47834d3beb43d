"""What is sent to a runtime that speaks CRI v1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kcm.errors import ContainerConfigError
from kcm.kubelet import cri
from kcm.kubelet.isolation import (
    ContainerIsolation,
    DNSConfig,
    IDMapping,
    NamespaceMode,
    Namespaces,
    SandboxIsolation,
    SecurityProfile,
    SELinuxLabel,
    UserNamespace,
)
from kcm.kubelet.runtime.cri.configs import build_container, build_resources, build_sandbox

POD = cri.SandboxConfig("web", "shop", "u1", hostname="web")
CONTAINER = cri.ContainerConfig("main", image="busybox")


def container(**fields: Any) -> Any:
    return build_container(replace(CONTAINER, **fields), {"l": "1"}, {"a": "2"})


def test_a_sandbox_has_its_names_ports_and_dns() -> None:
    ports = [cri.PortMapping(80, 8080, "UDP", "10.0.0.1")]
    dns = DNSConfig(["10.0.0.10"], ["shop.svc"], ["ndots:5"])
    message = build_sandbox(replace(POD, port_mappings=ports, dns=dns), {"l": "1"})
    assert (message.metadata.name, message.metadata.namespace) == ("web", "shop")
    assert message.hostname == "web"
    assert message.port_mappings[0].host_port == 8080
    assert message.port_mappings[0].protocol == 1
    assert list(message.dns_config.searches) == ["shop.svc"]
    assert dict(message.labels) == {"l": "1"}
    assert not build_sandbox(POD, {}).HasField("dns_config")


def test_a_sandbox_in_the_nodes_network_sets_no_name() -> None:
    """Runtimes refuse one: "unable to set hostname without a private UTS namespace"."""
    isolation = SandboxIsolation(namespaces=Namespaces(network=NamespaceMode.NODE))
    message = build_sandbox(replace(POD, host_network=True, isolation=isolation), {})
    assert message.hostname == ""
    assert message.linux.security_context.namespace_options.network == 2


def test_containers_have_the_users_of_their_sandbox_and_volumes_belong_to_them() -> None:
    mapping = (IDMapping(host_id=65536, container_id=0, length=65536),)
    users = UserNamespace(uids=mapping, gids=mapping)
    isolation = SandboxIsolation(namespaces=Namespaces(userns_options=users))
    sandbox = build_sandbox(replace(POD, isolation=isolation), {})
    mounts = [cri.Mount("/a", "/b")]
    made = build_container(replace(CONTAINER, mounts=mounts), {}, {}, users)
    for context in (sandbox.linux.security_context, made.linux.security_context):
        options = context.namespace_options.userns_options
        assert (options.mode, options.uids[0].host_id, options.gids[0].length) == (0, 65536, 65536)
    assert (made.mounts[0].uidMappings[0].host_id, len(made.mounts[0].gidMappings)) == (65536, 1)
    plain = container(mounts=mounts)
    assert not plain.linux.security_context.namespace_options.HasField("userns_options")
    assert not plain.mounts[0].uidMappings


def test_root_is_a_user_and_none_is_not() -> None:
    assert not container().linux.security_context.HasField("run_as_user")
    context = container(run_as_user=0, run_as_group=0).linux.security_context
    assert context.HasField("run_as_user")
    assert context.HasField("run_as_group")
    assert context.run_as_user.value == 0


def test_a_container_has_its_privileges() -> None:
    isolation = ContainerIsolation(
        namespaces=Namespaces(pid=NamespaceMode.TARGET, target_id="c9"),
        seccomp=SecurityProfile("Localhost", "/profiles/audit.json"),
        app_armor=SecurityProfile("Unconfined"),
        se_linux=SELinuxLabel(level="s0:c1"),
        read_only_root=True,
        fs_group=7,
        strict_groups=True,
        masked_paths=["/proc/kcore"],
    )
    context = container(
        isolation=isolation, privileged=True, no_new_privileges=True, supplemental_groups=[8],
        add_capabilities=["NET_ADMIN", "CAP_SYS_TIME"], drop_capabilities=["ALL"],
    ).linux.security_context  # fmt: skip
    assert (context.namespace_options.pid, context.namespace_options.target_id) == (3, "c9")
    assert (context.seccomp.profile_type, context.seccomp.localhost_ref) == (
        2, "/profiles/audit.json",
    )  # fmt: skip
    assert context.apparmor.profile_type == 1
    assert context.selinux_options.level == "s0:c1"
    assert list(context.supplemental_groups) == [7, 8]
    assert context.supplemental_groups_policy == 1
    assert (context.readonly_rootfs, context.privileged, context.no_new_privs) == (True,) * 3
    assert list(context.capabilities.add_capabilities) == ["NET_ADMIN", "SYS_TIME"]
    assert list(context.capabilities.drop_capabilities) == ["ALL"]
    assert list(context.masked_paths) == ["/proc/kcore"]


def test_a_container_has_its_mounts_and_environment() -> None:
    message = container(
        mounts=[cri.Mount("/a", "/b", True, propagation="Bidirectional")],
        env=[("A", "1"), ("RAW", b"\xff".decode("utf-8", "surrogateescape"))],
    )
    assert (message.mounts[0].readonly, message.mounts[0].propagation) == (True, 2)
    assert not message.mounts[0].HasField("image")
    assert [(each.key, each.value) for each in message.envs] == [("A", b"1"), ("RAW", b"\xff")]
    assert dict(message.annotations) == {"a": "2"}


def test_an_image_is_mounted_instead_of_a_folder() -> None:
    mount = container(mounts=[cri.Mount("", "/d", image="data:1", image_sub_path="a")]).mounts[0]
    assert (mount.image.image, mount.image_sub_path, mount.host_path) == ("data:1", "a", "")


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ["\udcff"]},
        {"args": ["\udcff"]},
        {"working_dir": "\udcff"},
        {"env": [("\udcff", "")]},
        {"mounts": [cri.Mount("/a", "/\udcff")]},
        {"mounts": [cri.Mount("/a", "/b", propagation="Sideways")]},
        {"isolation": ContainerIsolation(seccomp=SecurityProfile("Other"))},
    ],
)
def test_what_cannot_be_sent_is_refused_by_name(fields: dict[str, Any]) -> None:
    with pytest.raises(ContainerConfigError):
        container(**fields)


def test_a_period_is_sent_with_a_quota_only() -> None:
    assert build_resources(cri.Resources())["cpu_period"] == 0
    limited = build_resources(cri.Resources(cpu_quota=2000, oom_score_adj=-5))
    assert (limited["cpu_period"], limited["cpu_quota"], limited["oom_score_adj"]) == (
        100_000, 2000, -5,
    )  # fmt: skip
