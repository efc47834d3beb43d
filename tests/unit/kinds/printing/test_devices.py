"""The state of ResourceClaims. Cases of TestPrintResourceClaim
(pkg/printers/internalversion/printers_test.go).
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.testing import builders
from tests.samples import sample
from tests.unit.kinds.printing.test_kinds import row

CLAIMS = "resourceclaims.resource.k8s.io"
ALLOCATED: dict[str, Any] = {"allocation": {}}
RESERVED = {**ALLOCATED, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}


@pytest.mark.parametrize(
    ("status", "deleting", "state"),
    [
        ({}, False, "pending"),
        (ALLOCATED, False, "allocated"),
        (RESERVED, False, "allocated,reserved"),
        ({}, True, "deleted"),
        (ALLOCATED, True, "deleted,allocated"),
        (RESERVED, True, "deleted,allocated,reserved"),
    ],
)
def test_a_claim_shows_its_state(status: dict[str, Any], deleting: bool, state: str) -> None:
    since = builders.START if deleting else None
    obj: Any = sample(CLAIMS, status=status).with_metadata(deletion_timestamp=since)
    assert row(obj) == f"STATE {state}"
