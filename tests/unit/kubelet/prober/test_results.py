from __future__ import annotations

from kcm.kubelet.prober.results import Result, Results, Update
from kcm.testing import builders


def test_only_changes_are_told() -> None:
    heard: list[Update] = []
    results = Results(heard.append)
    pod = builders.pod()
    for result in (Result.UNKNOWN, Result.SUCCESS, Result.SUCCESS, Result.FAILURE):
        results.set("1", result, pod)
    assert [update.result.value for update in heard] == ["unknown", "successful", "failed"]
    assert heard[0] == Update("1", Result.UNKNOWN, pod.uid or "")


def test_a_container_passes_or_not_once_that_is_known() -> None:
    results = Results()
    pod = builders.pod()
    assert results.passes("1") is None
    for result, expected in (
        (Result.UNKNOWN, None), (Result.SUCCESS, True), (Result.FAILURE, False),
    ):  # fmt: skip
        results.set("1", result, pod)
        assert results.passes("1") is expected
    results.remove("1")
    assert results.get("1") is None
