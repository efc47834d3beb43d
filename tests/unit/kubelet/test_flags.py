"""Parsing the kubelet's flags into options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm.apimachinery.quantity import Quantity
from kcm.errors import ConfigurationError
from kcm.kubelet.flags import parse_flags
from kcm.kubelet.options import KubeletOptions


def parse(**flags: Any) -> KubeletOptions:
    return parse_flags({"node_name": "n1", "root_dir": "/var/lib/kcm", **flags})


def test_without_flags_the_defaults_are_upstreams() -> None:
    options = parse()
    root_dir = Path("/var/lib/kcm")
    assert options == KubeletOptions(node_name="n1", root_dir=root_dir, adopts_orphans=True)
    assert [threshold.signal.value for threshold in options.eviction.thresholds] == [
        "memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available",
        "imagefs.inodesFree",
    ]  # fmt: skip
    assert options.eviction.pressure_transition_period == 300.0


def test_texts_become_what_they_mean() -> None:
    options = parse(
        node_labels="a=b, disk=fast",
        register_with_taints="gpu=yes:NoSchedule,spare:NoExecute",
        allowed_users="1000,2000-2999",
        allowed_groups="100",
        allowed_host_paths="/srv,/data",
        container_log_max_size="1Mi",
        system_reserved="cpu=1",
        end_containers=True,
        concurrency=3,
    )
    assert options.node_labels == {"a": "b", "disk": "fast"}
    assert [(t.key, t.value, t.effect) for t in options.register_with_taints] == [
        ("gpu", "yes", "NoSchedule"),
        ("spare", None, "NoExecute"),
    ]
    assert options.allowed_users == ((1000, 1000), (2000, 2999))
    assert options.allowed_groups == ((100, 100),)
    assert options.allowed_host_paths == (Path("/srv"), Path("/data"))
    assert options.container_log_max_size == 1024 * 1024
    assert options.system_reserved == {"cpu": Quantity(1)}
    assert options.end_containers
    assert options.pods_dir == Path("/var/lib/kcm/pods")


def test_an_endpoint_means_containers_and_contradicts_another_runtime() -> None:
    endpoint = "unix:///s"
    assert parse(container_runtime_endpoint=endpoint).container_runtime == "cri"
    with pytest.raises(ConfigurationError, match="no effect with --container-runtime process"):
        parse(container_runtime_endpoint=endpoint, container_runtime="process")


def test_credential_plugins_need_their_folder_and_a_container_runtime() -> None:
    config = {"image_credential_provider_config": "/c.yaml"}
    with pytest.raises(ConfigurationError, match="need each other"):
        parse(**config, container_runtime="cri")
    both = {**config, "image_credential_provider_bin_dir": "/bin"}
    with pytest.raises(ConfigurationError, match="no effect without a container runtime"):
        parse(**both)
    options = parse(**both, container_runtime="cri")
    assert options.image_credential_provider_config == Path("/c.yaml")


@pytest.mark.parametrize(
    ("text", "address"),
    [("10.0.0.7:6443", ("10.0.0.7", 6443)), ("[::1]:8001", ("::1", 8001))],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse(pod_api_server=text).pod_api_server == address


def test_evictions_shutdown_and_server_are_configured(tmp_path: Path) -> None:
    for name in ("crt", "key"):
        (tmp_path / name).touch()
    options = parse(
        eviction_hard="",
        eviction_soft="memory.available<1Gi",
        eviction_soft_grace_period={"memory.available": 60.0},
        eviction_pressure_transition_period=30.0,
        eviction_max_pod_grace_period=5,
        shutdown_grace_period=30.0,
        shutdown_grace_period_critical_pods=10.0,
        bind_address="0.0.0.0",
        tls_cert_file=str(tmp_path / "crt"),
        tls_private_key_file=str(tmp_path / "key"),
    )
    (threshold,) = options.eviction.thresholds
    assert (threshold.grace_period, options.eviction.max_pod_grace_period) == (60.0, 5)
    assert options.eviction.pressure_transition_period == 30.0
    assert [period.seconds for period in options.shutdown_grace_periods] == [20, 10]
    assert options.bind_address == "0.0.0.0"
    assert options.certificate == (tmp_path / "crt", tmp_path / "key")


def test_a_port_that_was_asked_for_is_required() -> None:
    assert not parse().port_required
    assert parse(port=0).port_required


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"node_name": "Not_A_Name"}, "--node-name"),
        ({"node_labels": "a"}, "--node-labels"),
        ({"register_with_taints": "a:Sometimes"}, "--register-with-taints"),
        ({"allowed_users": "root"}, "--allowed-users"),
        ({"allowed_users": "1000-"}, "--allowed-users"),
        ({"allowed_groups": "3000-2000"}, "--allowed-groups"),
        ({"allowed_groups": "100-many"}, "--allowed-groups"),
        ({"pod_max_pids": 0}, "--pod-max-pids"),
        ({"pod_api_server": "host"}, "--pod-api-server"),
        ({"pod_api_server": ":6443"}, "--pod-api-server"),
        ({"pod_api_server": "host:0"}, "--pod-api-server"),
        ({"container_log_max_size": "much"}, "--container-log-max-size"),
        ({"sync_frequency": 0.0}, "--sync-frequency"),
        ({"max_pods": -1}, "--max-pods"),
        ({"container_runtime": "docker"}, "--container-runtime"),
        ({"stages": "stages.yaml"}, "--stages"),
        ({"tls_cert_file": "/nowhere"}, "--tls-cert-file"),
        ({"tls_cert_file": "/nowhere", "tls_private_key_file": "/nowhere"}, "no file /nowhere"),
        ({"eviction_hard": "x"}, "--eviction-hard"),
        (
            {"shutdown_grace_period": 1.0, "shutdown_grace_period_critical_pods": 2.0},
            "--shutdown-grace-period-critical-pods",
        ),
    ],
)
def test_values_that_are_not_possible_are_refused_by_their_flag(
    flags: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse(**flags)
