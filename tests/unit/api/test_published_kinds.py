"""Compares discovery with what Kubernetes 1.36 publishes: kinds, verbs, names and subresources.

`published_kinds.txt` has that of /apis, written by `tools/published_api.py`.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

from kcm.api.scheme import Scheme
from kcm.apiserver.documents.discovery import Discovery
from tests.unit.api.differences import read_differences

_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# Metrics, which upstream leaves to a server of its own.
_METRICS = "metrics.k8s.io/"
_TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "published_api.py"))


def list_differing() -> set[str]:
    """Returns the group, version and name of what is served in another way than upstream's."""
    served = json.loads(Discovery(Scheme()).apis(_ACCEPT).body)
    kcm = {line for line in _TOOL["resource_lines"](served) if not line.startswith(_METRICS)}
    text = Path(__file__).with_name("published_kinds.txt").read_text("utf-8")
    return {" ".join(line.split()[:2]) for line in kcm ^ set(text.splitlines())}


def test_kinds_are_served_as_upstream_serves_them_but_for_listed_differences() -> None:
    assert list_differing() == set(read_differences("Kinds"))
