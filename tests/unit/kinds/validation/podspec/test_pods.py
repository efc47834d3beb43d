"""Validation of pods and of changes to them."""

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Pod, PodSchedulingGate, Toleration
from kcm.kinds import defaults
from kcm.kinds.validation import validate_create, validate_update
from kcm.testing import builders
from tests.typed_objects import decode_as

PODS = Pod.resource


def faults(**spec: Any) -> list[str]:
    """Returns the faults of a pod with this spec, whose fields have their names in JSON."""
    body = {"metadata": {"name": "a", "namespace": "b"}, "spec": spec}
    spec.setdefault("containers", [{"name": "c", "image": "i"}])
    return [str(fault) for fault in validate_create(defaults.apply(codec.decode(body, PODS)))]


def annotation_faults(key: str, value: str, **spec: Any) -> list[str]:
    pod = builders.pod(metadata={"annotations": {key: value}}, **spec)
    return [str(fault) for fault in validate_create(pod)]


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        (
            {"restartPolicy": "Sometimes"},
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
            '"OnFailure", "Never"',
        ),
        (
            {"dnsPolicy": "x"},
            'spec.dnsPolicy: Unsupported value: "x": supported values: '
            '"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
        ),
        (
            {"activeDeadlineSeconds": 0},
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
            "inclusive",
        ),
        (
            {"preemptionPolicy": "x"},
            'spec.preemptionPolicy: Unsupported value: "x": supported values: '
            '"PreemptLowerPriority", "Never"',
        ),
        (
            {"os": {"name": "x"}},
            'spec.os: Unsupported value: "x": supported values: "linux", "windows"',
        ),
        ({"volumes": [{}]}, "spec.volumes[0].name: Required value"),
        (
            {"volumes": [{"name": "v"}, {"name": "v"}]},
            'spec.volumes[1].name: Duplicate value: "v"',
        ),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "nfs": {}}]},
            "spec.volumes[0].nfs: Forbidden: may not specify more than 1 volume type",
        ),
        (
            {"schedulingGates": [{"name": "g"}, {"name": "g"}]},
            'spec.schedulingGates[1]: Duplicate value: "g"',
        ),
        (
            {"schedulingGates": [{"name": "g"}], "nodeName": "n"},
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            {"ephemeralContainers": [{"name": "e", "image": "i"}]},
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
        (
            {"tolerations": [{"operator": "Equal"}]},
            'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when '
            '`key` is empty, which means \\"match all values and all keys\\"'.replace("\\", ""),
        ),
        (
            {"tolerations": [{"key": "k", "tolerationSeconds": 1}]},
            "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when "
            "`tolerationSeconds` is set",
        ),
        (
            {"tolerations": [{"key": "k", "operator": "Gt"}]},
            'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", '
            '"Exists"',
        ),
        (
            {"tolerations": [{"key": "k", "effect": "x"}]},
            'spec.tolerations[0].effect: Unsupported value: "x": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
        ),
        (
            {"overhead": {"cpu": "-1"}},
            'spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
    ],
)
def test_a_bad_spec_is_explained_in_upstreams_words(spec: dict[str, Any], fault: str) -> None:
    assert faults(**spec) == [fault]


@pytest.mark.parametrize(
    ("spec", "beginning"),
    [
        ({"nodeName": "N"}, 'spec.nodeName: Invalid value: "N": a lowercase RFC 1123 subdomain'),
        (
            {"hostnameOverride": "-"},
            'spec.hostnameOverride: Invalid value: "-": a lowercase RFC 1123 subdomain',
        ),
        (
            {"hostnameOverride": "a", "setHostnameAsFQDN": True},
            "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
        ),
        (
            {"hostnameOverride": "a", "hostNetwork": True},
            "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true",
        ),
        ({"hostname": "a.b"}, 'spec.hostname: Invalid value: "a.b": a lowercase RFC 1123 label'),
        ({"serviceAccountName": "_"}, 'spec.serviceAccountName: Invalid value: "_"'),
        ({"nodeSelector": {"a b": "c"}}, 'spec.nodeSelector: Invalid value: "a b": name part'),
        (
            {"readinessGates": [{"conditionType": "a b"}]},
            'spec.readinessGates[0].conditionType: Invalid value: "a b": name part',
        ),
        ({"volumes": [{"name": "V"}]}, 'spec.volumes[0].name: Invalid value: "V"'),
        (
            {"tolerations": [{"key": "k", "value": "a b"}]},
            'spec.tolerations[0].operator: Invalid value: "a b": a valid label must be',
        ),
        (
            {"tolerations": [{"operator": "Exists", "value": "v"}]},
            "spec.tolerations[0].operator: Invalid value: map[string]string{",
        ),
    ],
)
def test_bad_names_and_values_are_located(spec: dict[str, Any], beginning: str) -> None:
    [message] = faults(**spec)
    assert message.startswith(beginning)


def test_a_volume_without_a_source_is_refused_where_defaults_did_not_help() -> None:
    pod = builders.pod()
    bare = decode_as(Pod, {"spec": {"volumes": [{"name": "v"}]}}).spec.volumes
    broken = pod.with_spec(pod.spec.replace(volumes=bare))
    [error] = validate_create(broken)
    assert str(error) == "spec.volumes[0]: Required value: must specify a volume type"


@pytest.mark.parametrize("cost", ["0", "-5", "2147483647"])
def test_a_deletion_cost_is_an_int32(cost: str) -> None:
    assert annotation_faults("controller.kubernetes.io/pod-deletion-cost", cost) == []


@pytest.mark.parametrize("cost", ["", "x", "1.5", "+1", "01", "2147483648", "99999999999999"])
def test_anything_else_is_no_deletion_cost(cost: str) -> None:
    key = "controller.kubernetes.io/pod-deletion-cost"
    assert annotation_faults(key, cost) == [
        f'metadata.annotations[{key}]: Invalid value: "{cost}": must be a 32bit integer'
    ]


def test_a_mirror_pod_must_be_on_a_node() -> None:
    key = "kubernetes.io/config.mirror"
    assert annotation_faults(key, "x", node="n1") == []
    assert annotation_faults(key, "x") == [
        f'metadata.annotations[{key}]: Invalid value: "x": must set spec.nodeName if mirror pod '
        "annotation is set"
    ]


def change(old: Pod | None = None, **spec: Any) -> list[str]:
    old = old or builders.pod()
    new = old.with_spec(old.spec.replace(**spec))
    return [str(fault) for fault in validate_update(new, old)]


def test_an_image_may_change() -> None:
    old = builders.pod(init_containers=[builders.container("i")])
    [init] = old.spec.init_containers or []
    assert change(old, containers=[old.spec.containers[0].replace(image="nginx:2")]) == []
    assert change(old, init_containers=[init.replace(image="x")]) == []


def test_a_changed_image_must_still_be_one() -> None:
    old = builders.pod()
    empty = old.spec.containers[0].replace(image="")
    assert change(old, containers=[empty]) == ["spec.containers[0].image: Required value"]


def test_containers_may_not_come_or_go() -> None:
    two = [builders.container("a"), builders.container("b")]
    assert "spec.containers: Forbidden: pod updates may not add or remove containers" in change(
        containers=defaults.apply(builders.pod(containers=two)).spec.containers
    )
    assert "spec.initContainers: Forbidden: pod updates may not add or remove containers" in change(
        init_containers=builders.pod(containers=two).spec.containers
    )


def test_anything_else_may_not_change_and_the_fault_says_what_did() -> None:
    assert change(node_name="n2") == [
        "spec: Forbidden: pod updates may not change fields other than "
        "`spec.containers[*].image`,`spec.initContainers[*].image`,"
        "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
        "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
        'previously negative)\n  spec.nodeName: null -> "n2"'
    ]


def test_a_negative_grace_period_may_become_one() -> None:
    old = builders.pod(termination_grace_period_seconds=-1)
    assert change(old, termination_grace_period_seconds=1) == []
    assert len(change(old, termination_grace_period_seconds=2)) == 1
    for other in (0, 2, None):
        old = builders.pod(termination_grace_period_seconds=other)
        assert len(change(old, termination_grace_period_seconds=1)) == 1


def test_a_deadline_may_be_set_and_shortened_only() -> None:
    deadline = "spec.activeDeadlineSeconds: Invalid value"
    old = builders.pod(active_deadline_seconds=10)
    assert change(active_deadline_seconds=10) == []
    assert change(old, active_deadline_seconds=5) == []
    assert change(old, active_deadline_seconds=11) == [
        f"{deadline}: 11: must be less than or equal to previous value"
    ]
    assert change(old, active_deadline_seconds=None)[0] == (
        f"{deadline}: null: must not update from a positive integer to nil value"
    )
    assert f"{deadline}: -1: must be between 0 and 2147483647, inclusive" in change(
        old, active_deadline_seconds=-1
    )


def test_tolerations_may_be_added_and_their_seconds_changed() -> None:
    kept = Toleration(key="a", operator="Exists", effect="NoExecute", toleration_seconds=5)
    old = builders.pod(tolerations=[kept])
    longer = kept.replace(toleration_seconds=9)
    assert change(old, tolerations=[Toleration(key="b", operator="Exists"), longer]) == []
    assert change(old, tolerations=[]) == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its "
        "tolerationSeconds"
    ]


def test_scheduling_gates_may_be_removed_only() -> None:
    gates = [PodSchedulingGate(name="a"), PodSchedulingGate(name="b")]
    old = builders.pod(scheduling_gates=gates)
    assert change(old, scheduling_gates=gates[1:]) == []
    assert change(old, scheduling_gates=[*gates, PodSchedulingGate(name="c")]) == [
        "spec.schedulingGates[2].name: Forbidden: "
        "only deletion is allowed, but found new scheduling "
        "gate 'c'"
    ]


def test_a_gated_pod_may_be_narrowed_to_fewer_nodes() -> None:
    gates = [PodSchedulingGate(name="a")]
    old = builders.pod(scheduling_gates=gates, node_selector={"a": "b"})
    assert change(old, node_selector={"a": "b", "c": "d"}) == []
    assert len(change(old, node_selector={"a": "c"})) == 1
    assert len(change(builders.pod(), node_selector={"a": "c"})) == 1


def test_the_mirror_annotation_may_not_come_change_or_go() -> None:
    key = "kubernetes.io/config.mirror"
    plain = builders.pod(node="n1")
    mirror = plain.with_metadata(annotations={key: "x"})
    other = plain.with_metadata(annotations={key: "y"})
    path = f"metadata.annotations[{key}]: Forbidden: may not"
    for new, old, verb in ((mirror, plain, "add"), (plain, mirror, "remove or update")):
        assert str(validate_update(new, old)[0]) == f"{path} {verb} mirror pod annotation"
    assert validate_update(other, mirror)
