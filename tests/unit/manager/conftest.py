"""The sample controllers as the only ones there are."""

from tests.unit.component.conftest import samples

__all__ = ["samples"]
