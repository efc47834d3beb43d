"""What a type checker says about tests that use a control plane.

It is checked by mypy, which complains about an ignore that nothing needs.
"""

from __future__ import annotations

import kcm.testing
from kcm.testing import (
    Chaos,
    ChaosKind,
    ControlPlane,
    ErrorCode,
    Fault,
    Faults,
    FaultyNode,
    FaultyPod,
    Nodes,
    Pods,
    Verb,
)


def disturb(faults: Faults, verb: Verb, error: ErrorCode) -> Fault:
    """A helper as users write them."""
    return faults.api(verb=verb, error=error)


def lose(nodes: Nodes, pods: Pods) -> tuple[FaultyNode, FaultyPod]:
    return nodes["node-1"], pods["web"]


def storm(plane: ControlPlane, *kinds: ChaosKind) -> Chaos:
    return plane.chaos(of=kinds)


def mistake(plane: ControlPlane) -> None:
    plane.faults.api(verb="nope")  # type: ignore[arg-type] # no verb
    plane.faults.api(error=418)  # type: ignore[arg-type] # no code that servers answer
    plane.faults.watches(how="broken")  # type: ignore[arg-type] # cut or expired
    plane.faults.webhook("a", error="slow")  # type: ignore[arg-type] # refused or timeout
    plane.chaos(of=["rain"])  # type: ignore[list-item] # no kind
    plane.patch("pod/a", {}, patch_type="x")  # type: ignore[arg-type] # no type


def test_what_tests_hold_is_exported() -> None:
    names = {"Chaos", "Fault", "Faults", "Nodes", "Pods"}
    assert names <= set(kcm.testing.__all__)
    assert all(isinstance(getattr(kcm.testing, name), type) for name in names)
