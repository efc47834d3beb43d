"""After plugin/pkg/admission/runtimeclass/admission_test.go: TestSetOverhead, TestSetScheduling,
TestValidate.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.node_v1 import RuntimeClass
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.admission import runtime_classes
from kcm.store.reader import StoreReader
from kcm.testing.clock import FakeClock
from tests.unit.store.admission.passing import create
from tests.unit.store.admission.test_service_accounts import Objects

OVERHEAD = {"cpu": "100m", "memory": "1Gi"}
TOLERATION = {"key": "foo", "operator": "Equal", "value": "bar", "effect": "NoSchedule"}


def runtime(**fields: Any) -> RuntimeClass:
    body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "h", **fields}
    made = codec.decode({**body, "metadata": {"name": "gvisor"}}, BUILT_IN)
    assert isinstance(made, RuntimeClass)
    return made


def pod(**spec: Any) -> Pod:
    full = {"containers": [{"name": "c"}], "runtimeClassName": "gvisor", **spec}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": full}
    made = codec.decode(body, BUILT_IN)
    assert isinstance(made, Pod)
    return made


def admit(given: Pod, *objects: KubeObject) -> dict[str, Any]:
    """Returns what admission has changed of the pod's spec, as JSON."""
    reader = cast("StoreReader", Objects(*objects))
    plugin = runtime_classes.RuntimeClass(reader, FakeClock())
    admitted = create(plugin, given)
    assert create(plugin, admitted) is admitted  # a second time changes nothing
    before, after = codec.to_dict(given)["spec"], codec.to_dict(admitted)["spec"]
    return {name: after.get(name) for name in after if after.get(name) != before.get(name)}


@pytest.mark.parametrize(
    ("given", "fields", "changed"),
    [
        (pod(), {}, {}),
        (pod(), {"overhead": {"podFixed": OVERHEAD}}, {"overhead": OVERHEAD}),
        (pod(overhead={"cpu": "0.1", "memory": "1Gi"}), {"overhead": {"podFixed": OVERHEAD}}, {}),
        (
            pod(),
            {"scheduling": {"nodeSelector": {"foo": "bar"}, "tolerations": [TOLERATION]}},
            {"nodeSelector": {"foo": "bar"}, "tolerations": [TOLERATION]},
        ),
        (
            pod(nodeSelector={"fizz": "buzz"}, tolerations=[{"key": "a", "operator": "Exists"}]),
            {"scheduling": {"nodeSelector": {"foo": "bar"}, "tolerations": [TOLERATION]}},
            {
                "nodeSelector": {"fizz": "buzz", "foo": "bar"},
                "tolerations": [TOLERATION, {"key": "a", "operator": "Exists"}],
            },
        ),
        (
            pod(tolerations=[{**TOLERATION, "value": "other"}]),
            {"scheduling": {"tolerations": [TOLERATION]}},
            {"tolerations": [TOLERATION]},
        ),
        (pod(nodeSelector={"foo": "bar"}), {"scheduling": {"nodeSelector": {"foo": "bar"}}}, {}),
    ],
)
def test_a_pod_gets_what_its_class_says(
    given: Pod, fields: dict[str, Any], changed: dict[str, Any]
) -> None:
    assert admit(given, runtime(**fields)) == changed


def test_a_pod_without_a_class_is_left_alone() -> None:
    assert admit(pod(runtimeClassName=None)) == {}


@pytest.mark.parametrize(
    ("given", "objects", "words"),
    [
        (pod(), [], 'pods "p" is forbidden: pod rejected: RuntimeClass "gvisor" not found'),
        (
            pod(overhead=OVERHEAD),
            [runtime()],
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            pod(overhead=OVERHEAD, runtimeClassName=None),
            [],
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            pod(overhead={"cpu": "1"}),
            [runtime(overhead={"podFixed": OVERHEAD})],
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            pod(nodeSelector={"foo": "buzz"}),
            [runtime(scheduling={"nodeSelector": {"foo": "bar"}})],
            "conflict: runtimeClass.scheduling.nodeSelector[foo] = bar; "
            "pod.spec.nodeSelector[foo] = buzz",
        ),
    ],
)
def test_a_pod_that_its_class_does_not_fit_is_refused(
    given: Pod, objects: list[KubeObject], words: str
) -> None:
    with pytest.raises(errors.Forbidden) as refused:
        admit(given, *objects)
    assert words in refused.value.message


def test_a_class_is_read_again_after_a_write() -> None:
    objects, clock = Objects(runtime()), FakeClock()
    plugin = runtime_classes.RuntimeClass(cast("StoreReader", objects), clock)
    given = pod()
    assert create(plugin, given).spec.overhead is None
    objects.objects = {"gvisor": runtime(overhead={"podFixed": OVERHEAD})}
    objects.version += 1
    clock.step(0.5)
    assert create(plugin, given).spec.overhead is None
    clock.step(1.5)
    assert create(plugin, given).spec.overhead is not None
