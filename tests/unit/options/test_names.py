"""The table of controllers, against those of Kubernetes 1.36 (`controller_names.txt`)."""

from __future__ import annotations

from pathlib import Path

from kcm.options.names import KNOWN


def test_every_controller_of_kubernetes_is_in_the_table_and_no_others_but_those_of_clouds() -> None:
    upstream = Path(__file__).with_name("controller_names.txt").read_text("utf-8").split()
    assert {known.name for known in KNOWN if not known.cloud} == set(upstream)
