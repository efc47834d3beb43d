"""The pods behind Services: their ports."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Container, ContainerPort, ServicePort
from kcm.helpers.service_pods import port_of
from kcm.testing.builders import pod


def build_listening_container(name: str, number: int, **fields: Any) -> Container:
    port = ContainerPort(name="web", container_port=number, protocol=fields.pop("protocol", None))
    return Container(name=name, image=name, ports=[port], **fields)


SIDECAR = build_listening_container("sidecar", 3, restart_policy="Always")


@pytest.mark.parametrize(
    ("target", "containers", "init", "expected"),
    [
        (80, [], [], 80),
        (None, [], [], 8080),  # none: the port of the service
        ("web", [], [], None),
        ("web", [build_listening_container("a", 1), build_listening_container("b", 2)], [], 1),
        (
            "web",
            [build_listening_container("a", 1, protocol="UDP"), build_listening_container("b", 2)],
            [],
            2,
        ),
        ("web", [], [build_listening_container("init", 4)], None),
        ("web", [], [build_listening_container("init", 4), SIDECAR], 3),
        ("web", [build_listening_container("a", 1)], [SIDECAR], 1),
    ],
)
def test_a_named_port_is_looked_for_in_containers_and_then_in_sidecars(
    target: int | str | None,
    containers: list[Container],
    init: list[Container],
    expected: int | None,
) -> None:
    """TestFindPort of pkg/api/v1/pod, with the sidecars of 1.32."""
    new_pod = pod("p", containers=containers, init_containers=init)
    assert port_of(new_pod, ServicePort(port=8080, target_port=target)) == expected
