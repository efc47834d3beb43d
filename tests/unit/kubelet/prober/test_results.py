from __future__ import annotations

from kcm.kubelet.prober.results import ProbeResults, ProbeUpdate, ProbeVerdict
from kcm.testing import builders


def test_only_changes_are_told() -> None:
    heard: list[ProbeUpdate] = []
    results = ProbeResults(heard.append)
    pod = builders.pod()
    for result in (
        ProbeVerdict.UNKNOWN,
        ProbeVerdict.SUCCESS,
        ProbeVerdict.SUCCESS,
        ProbeVerdict.FAILURE,
    ):
        results.set("1", result, pod)
    assert [update.verdict.value for update in heard] == ["unknown", "successful", "failed"]
    assert heard[0] == ProbeUpdate("1", ProbeVerdict.UNKNOWN, pod.uid or "")


def test_a_container_passes_or_not_once_that_is_known() -> None:
    results = ProbeResults()
    pod = builders.pod()
    assert results.passes("1") is None
    for result, expected in (
        (ProbeVerdict.UNKNOWN, None), (ProbeVerdict.SUCCESS, True), (ProbeVerdict.FAILURE, False),
    ):  # fmt: skip
        results.set("1", result, pod)
        assert results.passes("1") is expected
    results.remove("1")
    assert results.get("1") is None
