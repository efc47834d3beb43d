"""The kubelet's flags as options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm.errors import ConfigurationError
from kcm.kubelet.assembly.process import options_of


def of(**flags: Any) -> Any:
    return options_of({"node_name": "n1", "root_dir": "/var/lib/kcm", **flags})


def test_texts_become_what_they_mean() -> None:
    options = of(
        node_labels="a=b, disk=fast",
        register_with_taints="gpu=yes:NoSchedule,spare:NoExecute",
        allowed_users="1000,2000-2999",
        allowed_groups="100",
        allowed_host_paths="/srv,/data",
        container_log_max_size="1Mi",
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
    assert options.pods_dir == Path("/var/lib/kcm/pods")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"node_name": "Not_A_Name"}, "--node-name"),
        ({"node_labels": "a"}, "--node-labels"),
        ({"register_with_taints": "a:Sometimes"}, "--register-with-taints"),
        ({"allowed_users": "root"}, "--allowed-users"),
        ({"allowed_groups": "100-many"}, "--allowed-groups"),
        ({"pod_max_pids": 0}, "--pod-max-pids"),
        ({"container_log_max_size": "much"}, "--container-log-max-size"),
        ({"sync_frequency": 0.0}, "--sync-frequency"),
        ({"max_pods": -1}, "--max-pods"),
        ({"container_runtime": "docker"}, "--container-runtime"),
        ({"stages": "stages.yaml"}, "--stages"),
    ],
)
def test_what_cannot_be_is_refused_by_its_flag(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        of(**flags)
