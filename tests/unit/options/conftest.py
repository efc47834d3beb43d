"""Replaces the registry's controllers with the sample controllers."""

from __future__ import annotations

import pytest

from kcm import registry
from kcm.reconcile.contract import Controller

SAMPLES = "tests.unit.options.sample_controllers"


@pytest.fixture(autouse=True)
def samples(monkeypatch: pytest.MonkeyPatch) -> tuple[type[Controller], ...]:
    lines = tuple(f"{SAMPLES}:{name}Controller" for name in ("Widget", "Gadget", "Quiet"))
    monkeypatch.setattr(registry, "CONTROLLERS", lines)
    return registry.controller_types()
