"""Replaces the registry's controllers with the sample controllers, as the tests of options do."""

from __future__ import annotations

from tests.unit.options.conftest import samples

__all__ = ["samples"]
