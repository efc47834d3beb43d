"""Which capabilities a container's processes can have, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.errors import ContainerConfigError
from kcm.kubelet.cri import ContainerConfig
from kcm.kubelet.runtime.process.capabilities import (
    DEFAULT,
    build_mask,
    check,
    find_kept_capabilities,
)
from kcm.kubelet.runtime.process.launches import build_privileges

EVERYTHING = (1 << 41) - 1
BIND, ADMIN, CHOWN = (build_mask([name]) for name in ("NET_BIND_SERVICE", "SYS_ADMIN", "CHOWN"))


def config(**fields: Any) -> ContainerConfig:
    return ContainerConfig("web", **fields)


def test_the_default_set_is_that_of_container_runtimes() -> None:
    assert DEFAULT == 0xA80425FB  # as /proc/PID/status shows it in a container of theirs


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({}, DEFAULT),
        ({"drop_capabilities": ["ALL"]}, 0),
        ({"drop_capabilities": ["all"]}, 0),
        ({"drop_capabilities": ["CHOWN"]}, DEFAULT & ~CHOWN),
        ({"drop_capabilities": ["SYS_ADMIN", "NO_SUCH"]}, DEFAULT),
        ({"add_capabilities": ["SYS_ADMIN"]}, DEFAULT | ADMIN),
        ({"add_capabilities": ["cap_sys_admin"]}, DEFAULT | ADMIN),
        ({"add_capabilities": ["NET_BIND_SERVICE"], "drop_capabilities": ["ALL"]}, BIND),
        ({"add_capabilities": ["CHOWN"], "drop_capabilities": ["CHOWN"]}, DEFAULT & ~CHOWN),
        ({"add_capabilities": ["ALL"]}, EVERYTHING),
        ({"add_capabilities": ["ALL"], "drop_capabilities": ["CHOWN"]}, EVERYTHING & ~CHOWN),
        ({"privileged": True}, EVERYTHING),
        ({"privileged": True, "drop_capabilities": ["ALL"]}, EVERYTHING),
    ],
)
def test_a_container_has_the_default_set_and_what_it_adds_without_what_it_drops(
    asked: dict[str, Any], kept: int
) -> None:
    assert find_kept_capabilities(config(**asked), EVERYTHING) == kept


def test_nobody_gets_more_than_the_kubelet_has() -> None:
    assert find_kept_capabilities(config(), BIND) == BIND
    assert find_kept_capabilities(config(add_capabilities=["ALL"]), DEFAULT) == DEFAULT


@pytest.mark.parametrize(
    ("asked", "available", "words"),
    [
        ({"add_capabilities": ["NO_SUCH"]}, EVERYTHING, "unknown capabilities: NO_SUCH"),
        ({"add_capabilities": ["SYS_TIME"]}, DEFAULT, "the kubelet itself does not have: SYS_TIME"),
        ({"drop_capabilities": ["ALL"]}, BIND, "lacks SETPCAP"),
        ({}, BIND | ADMIN, "lacks SETPCAP"),
    ],
)
def test_root_refuses_what_it_cannot_give_or_take(
    asked: dict[str, Any], available: int, words: str
) -> None:
    with pytest.raises(ContainerConfigError, match=words):
        check(config(**asked), available, root=True)


@pytest.mark.parametrize("asked", [{"add_capabilities": ["CHOWN"]}, {"privileged": True}])
def test_a_kubelet_that_is_not_root_adds_none(asked: dict[str, Any]) -> None:
    with pytest.raises(ContainerConfigError, match="only a kubelet that runs as root"):
        check(config(**asked), 0, root=False)


def test_a_kubelet_that_is_not_root_drops_all_by_forbidding_new_privileges() -> None:
    dropping = config(drop_capabilities=["NET_RAW"])
    check(dropping, 0, root=False)
    assert build_privileges(dropping, 0) == [("capabilities", "0"), ("no_new_privs", "1")]
    assert build_privileges(config(), 0) == [("capabilities", "0")]
    assert build_privileges(dropping, DEFAULT) == [
        ("capabilities", str(DEFAULT & ~build_mask(["NET_RAW"])))
    ]
