"""Validation of changes to ephemeral containers, and to the resources of containers."""

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.kinds import defaults
from kcm.kinds.validation import validate_ephemeral_containers, validate_resize
from kcm.store.options import Subresource
from kcm.store.rules import prepare_modification

PODS = Pod.resource
MIRROR = {"annotations": {"kubernetes.io/config.mirror": "foo"}}


def pod(*ephemeral: dict[str, Any], metadata: Any = None, status: Any = None, **spec: Any) -> Pod:
    spec.setdefault("containers", [{"name": "c", "image": "i"}])
    spec.setdefault("nodeName", "n")
    spec["ephemeralContainers"] = list(ephemeral)
    body = {"metadata": {"name": "a", "namespace": "b", **(metadata or {})}, "spec": spec}
    built = defaults.apply(codec.decode(body | {"status": status or {}}, PODS))
    assert isinstance(built, Pod)
    return built


def debugger(name: str = "debugger", image: str = "busybox", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": image, **fields}


# after TestValidatePodEphemeralContainersUpdate in pkg/apis/core/validation/validation_test.go
@pytest.mark.parametrize(
    ("new", "old", "fault"),
    [
        ([], [], ""),
        ([debugger("a"), debugger("b")], [debugger("a"), debugger("b")], ""),
        ([debugger("b"), debugger("a")], [debugger("a"), debugger("b")], ""),
        ([debugger()], [], ""),
        ([debugger("a"), debugger("b")], [], ""),
        ([debugger("a", "image1")], [debugger("a", "image2")],
         'spec.ephemeralContainers: Forbidden: existing ephemeral containers "a" may not be '
         "changed"),
        ([debugger("a")], [debugger("b")],
         'spec.ephemeralContainers: Forbidden: existing ephemeral containers "b" may not be '
         "removed"),
        ([], [debugger("a")],
         'spec.ephemeralContainers: Forbidden: existing ephemeral containers "a" may not be '
         "removed"),
        ([debugger("a", targetContainerName="c")], [], ""),
        ([debugger("a", targetContainerName="bogus")], [],
         'spec.ephemeralContainers[0].targetContainerName: Not found: "bogus"'),
        ([debugger("c")], [], 'spec.ephemeralContainers[0].name: Duplicate value: "c"'),
        ([debugger("a", ports=[{"containerPort": 1}])], [],
         "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container"),
    ],
)  # fmt: skip
def test_ephemeral_containers_are_only_added(
    new: list[dict[str, Any]], old: list[dict[str, Any]], fault: str
) -> None:
    faults = [str(found) for found in validate_ephemeral_containers(pod(*new), pod(*old))]
    assert (fault in faults[0]) if fault else not faults


def test_static_pods_have_no_ephemeral_containers() -> None:
    new, old = pod(debugger(), metadata=MIRROR), pod(metadata=MIRROR)
    faults = [str(found) for found in validate_ephemeral_containers(new, old)]
    assert faults == ["[]: Forbidden: static pods do not support ephemeral containers"]


def amounts(cpu: str = "", memory: str = "", **others: str) -> dict[str, str]:
    given = {"cpu": cpu, "memory": memory, **others}
    return {name.replace("_", "-"): amount for name, amount in given.items() if amount}


def sized(
    requests: dict[str, str], limits: dict[str, str] | None = None, *, restarts: bool = False,
    init: str | None = None, status: Any = None, **spec: Any,
) -> Pod:  # fmt: skip
    """Returns a pod with these resources, with `init` those of an init container."""
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}] if restarts else []
    container: dict[str, Any] = {"name": "c", "image": "i", "resizePolicy": policy}
    container["resources"] = {"requests": requests, "limits": limits or {}}
    if init is None:
        return pod(containers=[container], status=status, **spec)
    inits = [container | {"name": "i"} | ({"restartPolicy": init} if init else {})]
    fixed = {"name": "c", "image": "i", "resources": {"requests": amounts("1")}}
    return pod(containers=[fixed], initContainers=inits, status=status, **spec)


SMALL, LARGE = amounts("100m", "100Mi"), amounts("200m", "200Mi")
REMOVED = "spec.containers[0].resources.{0}: Forbidden: resource {0} cannot be removed"
ONLY = "spec: Forbidden: only cpu and memory resources are mutable"
CLASS = 'spec: Invalid value: "{}": Pod QOS Class may not change as a result of resizing'
SIDECARS = "spec: Forbidden: only cpu and memory resources for sidecar containers are mutable"
INITS = "spec: Forbidden: resources for non-sidecar init containers are immutable"


# after TestValidatePodResize in pkg/apis/core/validation/validation_test.go
@pytest.mark.parametrize(
    ("new", "old", "fault"),
    [
        (sized(LARGE), sized(SMALL), ""),
        (sized(SMALL), sized(LARGE), ""),
        (sized(SMALL, amounts("2", "1Gi")), sized(SMALL, amounts("1", "500Mi")), ""),
        (sized(SMALL, amounts("1", "1Gi")), sized(SMALL, amounts("2", "1Gi")), ""),
        (sized(SMALL, amounts("1", "1Gi")), sized(SMALL, amounts("1", "2Gi")), ""),
        (sized(SMALL, amounts("1", "1Gi")), sized(SMALL, amounts("1")), ""),
        (sized(SMALL, restarts=True), sized(SMALL), ONLY),
        (sized(amounts("100m")), sized(SMALL), REMOVED.format("requests")),
        (sized(SMALL, amounts("1")), sized(SMALL, amounts("1", "1Gi")), REMOVED.format("limits")),
        (sized(amounts("200m", "100Mi", ephemeral_storage="1Gi")),
         sized(amounts("100m", "100Mi", ephemeral_storage="2Gi")), ONLY),
        (sized(SMALL, amounts("1", ephemeral_storage="2Gi")),
         sized(SMALL, amounts("1", ephemeral_storage="1Gi")), ONLY),
        # the class of the pod
        (sized(LARGE, LARGE), sized(SMALL, SMALL), ""),
        (sized(LARGE, amounts("300m", "300Mi")), sized(SMALL, SMALL), CLASS.format("")),
        (sized(LARGE, LARGE), sized(SMALL, LARGE), CLASS.format("")),
        (sized(SMALL), sized({}), CLASS.format("")),
        # init containers
        (sized(LARGE, init="Always"), sized(SMALL, init="Always"), ""),
        (sized(LARGE, init=""), sized(SMALL, init=""), INITS),
        (sized(amounts("1", ephemeral_storage="2Gi"), init="Always"),
         sized(amounts("1", ephemeral_storage="1Gi"), init="Always"), SIDECARS),
    ],
)  # fmt: skip
def test_cpu_and_memory_are_resized_within_the_pods_class(new: Pod, old: Pod, fault: str) -> None:
    faults = [str(found) for found in validate_resize(new, old)]
    assert (fault in faults) if fault else not faults, faults


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"metadata": MIRROR}, "[]: Forbidden: static pods cannot be resized"),
        ({"os": {"name": "windows"}}, "[]: Forbidden: windows pods cannot be resized"),
        (
            {"status": {"containerStatuses": [{"name": "c", "image": "i", "imageID": "",
             "ready": True, "restartCount": 0, "state": {"running": {}}}]}},
            "spec: Forbidden: Pod running on node without support for resize",
        ),
    ],
)  # fmt: skip
def test_some_pods_are_never_resized(fields: dict[str, Any], fault: str) -> None:
    faults = validate_resize(sized(LARGE, **fields), sized(SMALL, **fields))
    assert [str(found) for found in faults] == [fault]


# after TestEphemeralContainerStrategyValidateUpdate and TestPodResizePrepareForUpdate in
# pkg/registry/core/pod/strategy_test.go
def test_a_part_changes_nothing_else_of_the_pod() -> None:
    old = sized(SMALL)
    new = pod(debugger(), containers=[{"name": "c", "image": "other"}], metadata={
        "labels": {"a": "b"}})  # fmt: skip
    added = prepare_modification(new, old, PODS, Subresource.EPHEMERAL_CONTAINERS)
    assert isinstance(added, Pod)
    assert [container.name for container in added.spec.ephemeral_containers or ()] == ["debugger"]
    assert (added.spec.containers, added.labels) == (old.spec.containers, {})
    larger = sized(LARGE).with_metadata(labels={"a": "b"})
    larger = larger.with_spec(larger.spec.replace(node_name="other"))
    resized = prepare_modification(larger, old, PODS, Subresource.RESIZE)
    assert isinstance(resized, Pod)
    assert resized.spec.containers == larger.spec.containers
    assert (resized.spec.node_name, resized.labels) == ("n", {})
    assert prepare_modification(old, old, PODS, Subresource.RESIZE) is old


def test_a_resize_may_not_rename_containers() -> None:
    with pytest.raises(errors.Invalid, match="containers may not be added, removed or renamed"):
        prepare_modification(pod(), sized(SMALL, init="Always"), PODS, Subresource.RESIZE)
