"""A pod's resolver. Cases of the policies: TestGetPodDNS and TestFormDNSSearchFitsLimits of
pkg/kubelet/network/dns, Kubernetes 1.36.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.kubelet.containers.dns import PodDNS, read_resolv_conf
from kcm.kubelet.isolation import ClusterDNS, DNSConfig
from kcm.kubelet.recorder import KubeletEventRecorder

NODE = (
    "# a comment\nnameserver 192.0.2.1\nsearch old.example\nsearch corp.example. .\noptions a:1 b\n"
)
OF_NODE = DNSConfig(["192.0.2.1"], ["corp.example"], ["a:1", "b"])
SEARCHES = ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"]
OF_CLUSTER = DNSConfig(["10.96.0.10"], SEARCHES, ("ndots:5",))


class Recorder(KubeletEventRecorder):
    """Keeps the reasons of events."""

    def __init__(self) -> None:
        super().__init__(None, "n1")
        self.texts: list[str] = []

    def record_pod_event(self, pod: Pod | None, *words: Any) -> None:
        self.texts.append(": ".join(words[1:3]))


def build(
    tmp_path: Path, servers: tuple[str, ...] = ("10.96.0.10",), **spec: Any
) -> tuple[DNSConfig, list[str]]:
    file = tmp_path / "resolv.conf"
    file.write_text(NODE)
    pod = Pod.model_validate(
        {"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": spec}
    )
    recorder = Recorder()
    config = PodDNS(ClusterDNS(servers, resolv_conf=file), recorder).build(pod)
    return (
        DNSConfig(list(config.servers), list(config.searches), config.options),
        recorder.texts,
    )


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, OF_CLUSTER),
        ({"dnsPolicy": "ClusterFirst"}, OF_CLUSTER),
        ({"dnsPolicy": "ClusterFirst", "hostNetwork": True}, OF_NODE),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, OF_CLUSTER),
        ({"dnsPolicy": "Default"}, OF_NODE),
        ({"dnsPolicy": "None"}, DNSConfig([], [], ())),
    ],
)
def test_the_policy_decides(tmp_path: Path, spec: dict[str, Any], wanted: DNSConfig) -> None:
    assert build(tmp_path, **spec) == (wanted, [])


def test_without_a_cluster_dns_the_nodes_is_used_with_an_event(tmp_path: Path) -> None:
    config, texts = build(tmp_path, servers=())
    assert config == OF_NODE
    assert "Falling back to" in texts[0]


def test_a_pods_own_settings_are_added_and_replace_options(tmp_path: Path) -> None:
    own = {
        "nameservers": ["192.0.2.1", "192.0.2.9"],
        "searches": ["corp.example", "more.example"],
        "options": [{"name": "a", "value": "7"}, {"name": "c"}],
    }
    config, _ = build(tmp_path, dnsPolicy="Default", dnsConfig=own)
    assert config == DNSConfig(
        ["192.0.2.1", "192.0.2.9"], ["corp.example", "more.example"], ["a:7", "b", "c"]
    )


def test_what_a_resolver_would_not_read_is_left_out_with_an_event(tmp_path: Path) -> None:
    many = {
        "nameservers": [f"192.0.2.{number}" for number in range(5)],
        "searches": ["x" * 254, *(f"{number}{'y' * 200}" for number in range(32))],
    }
    config, texts = build(tmp_path, dnsPolicy="None", dnsConfig=many)
    assert len(config.servers) == 3
    assert len(" ".join(config.searches)) <= 2048
    assert len(config.searches) == 10
    assert [text.partition(" limits")[0] for text in texts] == [
        "DNSConfigForming: Nameserver", "DNSConfigForming: Search Line",
    ]  # fmt: skip


def test_a_node_without_a_resolver_says_so(tmp_path: Path) -> None:
    with pytest.raises(errors.ContainerRuntimeError, match="cannot be read: No such file"):
        read_resolv_conf(tmp_path / "missing")
