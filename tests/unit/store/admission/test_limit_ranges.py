"""Tests which defaults LimitRanges set and which objects they refuse. The cases follow upstream's
plugin/pkg/admission/limitranger/admission_test.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import LimitRange
from kcm.store.admission.limit_ranges import (
    ANNOTATION,
    faults_of_claim,
    faults_of_pod,
    with_defaults,
)
from tests.samples import sample, with_spec
from tests.unit.kinds.quota.test_pods import pod_of


def limits(type_: str, **amounts: dict[str, str]) -> LimitRange:
    limit_range: LimitRange = sample("limitranges", spec={"limits": [{"type": type_, **amounts}]})
    return limit_range


def build_pod(requests: dict[str, str] | None = None, limit: dict[str, str] | None = None) -> Any:
    return pod_of({"requests": requests or {}, "limits": limit or {}})


@pytest.mark.parametrize(
    ("type_", "amounts", "pod", "expected"),
    [
        ("Container", {"min": {"cpu": "50m"}}, build_pod({"cpu": "100m"}), []),
        (
            "Container",
            {"min": {"cpu": "50m"}},
            build_pod({"cpu": "40m"}),
            ["minimum cpu usage per Container is 50m, but request is 40m"],
        ),
        (
            "Container",
            {"min": {"memory": "1Mi"}},
            build_pod({"cpu": "1"}),
            ["minimum memory usage per Container is 1Mi. No request is specified"],
        ),
        (
            "Container",
            {"max": {"cpu": "1"}},
            build_pod(None, {"cpu": "2"}),
            ["maximum cpu usage per Container is 1, but limit is 2"],
        ),
        (
            "Container",
            {"max": {"cpu": "1"}},
            build_pod({"cpu": "1"}),
            ["maximum cpu usage per Container is 1. No limit is specified"],
        ),
        (
            "Container",
            {"maxLimitRequestRatio": {"cpu": "2"}},
            build_pod({"cpu": "1"}, {"cpu": "2"}),
            [],
        ),
        (
            "Container",
            {"maxLimitRequestRatio": {"cpu": "1500m"}},
            build_pod({"cpu": "1"}, {"cpu": "2"}),
            [
                "cpu max limit to request ratio per Container is 1500m, but provided ratio is "
                "2.000000"
            ],
        ),
        (
            "Container",
            {"maxLimitRequestRatio": {"cpu": "2"}},
            build_pod(),
            [
                "cpu max limit to request ratio per Container is 2, but no request is specified "
                "or request is 0"
            ],
        ),
        (
            "Container",
            {"maxLimitRequestRatio": {"cpu": "2"}},
            build_pod({"cpu": "1"}),
            [
                "cpu max limit to request ratio per Container is 2, but no limit is specified or "
                "limit is 0"
            ],
        ),
        (
            "Pod",
            {"max": {"cpu": "3"}},
            pod_of(*[{"limits": {"cpu": "2"}}] * 2),
            ["maximum cpu usage per Pod is 3, but limit is 4"],
        ),
        ("Pod", {"max": {"cpu": "3"}}, build_pod(None, {"cpu": "3"}), []),
        ("PersistentVolumeClaim", {"max": {"storage": "1"}}, build_pod(), []),
    ],
)
def test_faults(type_: str, amounts: Any, pod: Any, expected: list[str]) -> None:
    (item,) = limits(type_, **amounts).spec.limits
    assert list(faults_of_pod(pod, item)) == expected


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"min": {"storage": "1Gi"}, "max": {"storage": "1Gi"}}, []),
        (
            {"min": {"storage": "2Gi"}},
            ["minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"],
        ),
        (
            {"max": {"storage": "1Mi"}},
            ["maximum storage usage per PersistentVolumeClaim is 1Mi, but request is 1Gi"],
        ),
    ],
)
def test_faults_of_claims(amounts: Any, expected: list[str]) -> None:
    (item,) = limits("PersistentVolumeClaim", **amounts).spec.limits
    claim = with_spec("persistentvolumeclaims")
    assert list(faults_of_claim(claim, item)) == expected


def test_containers_that_name_nothing_get_the_defaults_and_an_annotation_tells() -> None:
    first = {"name": "init", "image": "i"}
    pod = pod_of({"requests": {"cpu": "1"}}, {}, initContainers=[first])
    limit_range = limits(
        "Container", default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"}
    )
    filled = with_defaults(pod, limit_range)
    shown = [
        {
            f: {n: str(a) for n, a in (getattr(c.resources, f) or {}).items()}
            for f in ("requests", "limits")
        }
        for c in [*filled.spec.containers, *(filled.spec.init_containers or ())]
    ]
    whole = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    assert shown == [whole] * 3
    assert filled.annotations[ANNOTATION] == (
        "LimitRanger plugin set: memory request for container c0; "
        "cpu, memory limit for container c0; cpu, memory request for container c1; "
        "cpu, memory limit for container c1; cpu, memory request for init container init; "
        "cpu, memory limit for init container init"
    )
    assert with_defaults(filled, limit_range) is filled
