"""After plugin/pkg/admission/defaulttolerationseconds/admission_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Toleration
from kcm.settings import Settings
from kcm.store.admission.toleration_seconds import DefaultTolerationSeconds
from tests.new_objects import pod
from tests.unit.store.admission.passing import create, update

FIELDS = {"operator": "Exists", "effect": "NoExecute"}
BOTH = [("node.kubernetes.io/not-ready", 300), ("node.kubernetes.io/unreachable", 300)]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], BOTH),
        ([{"key": "foo"}], [("foo", None), *BOTH]),
        ([{"key": BOTH[0][0]}], [(BOTH[0][0], None), BOTH[1]]),
        ([{"key": BOTH[0][0], "effect": "NoSchedule"}], [(BOTH[0][0], None), *BOTH]),
        ([{"effect": None, "key": None}], [(None, None)]),
    ],
)
def test_new_and_updated_pods_get_what_they_lack(
    given: list[dict[str, Any]], wanted: list[tuple[str | None, int | None]]
) -> None:
    tolerations = [Toleration(**{**FIELDS, **one}) for one in given] or None
    plugin = DefaultTolerationSeconds(Settings())
    new = pod("a", tolerations=tolerations)
    for admitted in (create(plugin, new), update(plugin, new, pod("a"))):
        found = [(one.key, one.toleration_seconds) for one in admitted.spec.tolerations or ()]
        assert found == wanted
        assert update(plugin, admitted, admitted) is admitted
