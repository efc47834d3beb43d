"""Strategies of claims and slices, after the strategy_test.go of pkg/registry/resource."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kcm.store.strategies.base import Strategy
from kcm.store.strategies.kinds import strategy_of
from tests.samples import sample

CLAIMS, SLICES = "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEVICE = {"driver": "d", "pool": "p", "device": "x"}


def build_claim(*devices: str, reports: int = 1) -> Any:
    results = [{"request": "gpu", **DEVICE, "device": device} for device in devices]
    allocation = {"devices": {"results": results}} if results else None
    status = {"allocation": allocation, "devices": [DEVICE] * reports}
    return sample(CLAIMS, status=status)


def test_the_report_about_a_device_goes_with_its_allocation() -> None:
    strategy: Strategy[Any] = strategy_of(build_claim().resource)
    old = build_claim("x")
    assert strategy.for_status(build_claim("x"), old).status.devices
    assert strategy.for_status(build_claim(), old).status.devices is None
    # One that was never allocated is for validation to refuse.
    assert strategy.for_status(build_claim(), build_claim("y")).status.devices


def test_a_new_claim_has_no_status() -> None:
    claim = build_claim("x")
    strategy: Strategy[Any] = strategy_of(claim.resource)
    assert strategy.for_create(claim).status.allocation is None


def test_a_new_taint_has_the_time_at_which_it_was_added() -> None:
    taint = {"key": "a", "effect": "NoSchedule"}
    old = {**taint, "timeAdded": "2020-01-01T00:00:00Z"}
    devices = [{"name": "x", "taints": [taint, old]}, {"name": "y"}]
    made = sample(SLICES, spec={"driver": "d", "devices": devices})
    made = made.with_metadata(creation_timestamp=NOW)
    strategy: Strategy[Any] = strategy_of(made.resource)
    [tainted, plain] = strategy.for_create(made).spec.devices
    assert [taint.time_added.year for taint in tainted.taints] == [2026, 2020]
    assert plain.taints is None
