"""Validation of a pod's status."""

import pytest

from kcm.api.core_v1 import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    HostIP,
    Pod,
    PodIP,
    ResourceRequirements,
)
from kcm.api.core_v1.container_statuses import ContainerUser, LinuxContainerUser
from kcm.api.core_v1.pods import (
    ContainerExtendedResourceRequest,
    PodExtendedResourceClaimStatus,
    PodOS,
)
from kcm.apimachinery.quantity import parse
from kcm.kinds.validation import validate_status_update
from kcm.testing import builders


def faults(new: Pod, old: Pod | None = None) -> list[str]:
    return [str(fault) for fault in validate_status_update(new, old or builders.pod())]


def build_ended_status(code: int = 0) -> ContainerStatus:
    state = ContainerState(terminated=ContainerStateTerminated(exit_code=code))
    return ContainerStatus(name="c", state=state)


RUNNING = ContainerStatus(name="c", state=ContainerState())


def test_a_phase_may_change() -> None:
    assert faults(builders.pod(phase="Running", ready=True)) == []


def test_conditions_have_qualified_types() -> None:
    pod = builders.pod(status={"conditions": [builders.condition("a b")]})
    assert faults(pod)[0].startswith('metadata.conditions[0].Type: Invalid value: "a b"')
    pod = builders.pod(status={"conditions": [builders.condition("example.com/Ready")]})
    assert faults(pod) == []


def test_a_status_update_binds_no_pod() -> None:
    assert faults(builders.pod(node="n1")) == [
        "status.nodeName: Forbidden: may not be changed directly"
    ]


def test_a_nominated_node_is_a_node_name() -> None:
    pod = builders.pod(status={"nominated_node_name": "N"})
    assert faults(pod)[0].startswith('status.nominatedNodeName: Invalid value: "N"')


def test_addresses_are_addresses() -> None:
    good = {"pod_ips": [PodIP(ip="10.0.0.1"), PodIP(ip="::1")], "host_ips": [HostIP(ip="10.0.0.1")]}
    assert faults(builders.pod(status=good)) == []
    for ips in (["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "::1", "::2"]):
        several = {"pod_ips": [PodIP(ip=ip) for ip in ips]}
        assert faults(builders.pod(status=several)) == [
            f'status.podIPs: Invalid value: "{", ".join(ips)}": may specify no more than one IP '
            "for each IP family"
        ]
    assert faults(builders.pod(status={"pod_ips": [PodIP(ip="x")]})) == [
        'status.podIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or '
        "2001:db8::ffff)"
    ]


@pytest.mark.parametrize(
    ("policy", "code", "refused"),
    [
        ("Always", 0, False),
        ("OnFailure", 1, False),
        ("OnFailure", 0, True),
        ("Never", 1, True),
    ],
)
def test_a_container_comes_back_only_if_the_restart_policy_says_so(
    policy: str, code: int, refused: bool
) -> None:
    for field, wire in (
        ("container_statuses", "containerStatuses"),
        ("init_container_statuses", "initContainerStatuses"),
    ):
        old = builders.pod(restart_policy=policy, status={field: [build_ended_status(code)]})
        new = builders.pod(restart_policy=policy, status={field: [RUNNING]})
        fault = (
            f"status.{wire}[0].state: Forbidden: may not be transitioned to non-terminated state"
        )
        assert faults(new, old) == ([fault] if refused else [])
        assert faults(old, old) == []


def test_a_sidecar_comes_back_whatever_the_restart_policy() -> None:
    sidecar = builders.container("c", restart_policy="Always")
    old, new = (
        builders.pod(
            status={"init_container_statuses": [status]},
            restart_policy="Never",
            init_containers=[sidecar],
        )
        for status in (build_ended_status(), RUNNING)
    )
    assert faults(new, old) == []


def test_a_bound_pod_is_nominated_for_no_node() -> None:
    bound = builders.pod(node="n")
    nominated = bound.with_status(bound.status.replace(nominated_node_name="m"))
    [fault] = faults(nominated, bound)
    assert fault == (
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a "
        "node"
    )


def test_generations_are_not_negative() -> None:
    pod = builders.pod()
    [fault] = faults(pod.with_status(pod.status.replace(observed_generation=-1)))
    assert fault.startswith("status.observedGeneration: Invalid value: -1: must be a non-negative")


def test_users_of_containers_have_ids_on_linux_only() -> None:
    user = ContainerUser(linux=LinuxContainerUser(uid=-1, gid=0, supplemental_groups=[-2]))
    pod = builders.pod()
    pod = pod.with_status(pod.status.replace(container_statuses=[RUNNING.replace(user=user)]))
    path = "status.containerStatuses[0].user.linux"
    assert [fault.partition(":")[0] for fault in faults(pod)] == [
        f"{path}.uid",
        f"{path}.supplementalGroups[0]",
    ]
    pod = pod.with_spec(pod.spec.replace(os=PodOS(name="windows")))
    assert faults(pod) == [f"{path}: Forbidden: cannot be set for a windows pod"]


FIELDS = ("container_name", "resource_name", "request_name")
GPU = ("ctr", "example.com/gpu", "container-0-request-0")
MUST_MATCH = "must match the name of an entry in spec.initContainers.name or spec.containers.name"


# Cases of TestValidatePodStatusUpdate (pkg/apis/core/validation/validation_test.go).
@pytest.mark.parametrize("field", ["containers", "init_containers"])
@pytest.mark.parametrize(
    ("mappings", "claim", "complaints"),
    [
        ([GPU], "xyz", []),
        ([GPU, (*GPU[:2], "container-1-request-0")], "xyz", []),
        ([], "xyz", ["requestMappings: Required value: at least one request mapping is required"]),
        ([GPU, GPU], "xyz", [
            'requestMappings[1].containerName: Duplicate value: "ctr"',
            'requestMappings[1].resourceName: Duplicate value: "example.com/gpu"',
            'requestMappings[1].requestName: Duplicate value: "container-0-request-0"',
        ]),
        ([("abc", *GPU[1:])], "xyz", [
            f'requestMappings[0].containerName: Invalid value: "abc": {MUST_MATCH}'
        ]),
        ([("ctr", "example.com/cpu", GPU[2])], "xyz", [
            'requestMappings[0].resourceName: Invalid value: "example.com/cpu": must match the '
            "extended resource name of an entry in spec.initContainers.resources.requests or "
            "spec.containers.resources.requests"
        ]),
        ([GPU], "", ["resourceClaimName: Required value"]),
        ([GPU], "xyz/abc", ['resourceClaimName: Invalid value: "xyz/abc": a lowercase RFC 1123 ']),
    ],
)  # fmt: skip
def test_extended_resources_come_from_a_claim_by_its_requests(
    field: str, mappings: list[tuple[str, str, str]], claim: str, complaints: list[str]
) -> None:
    amounts = {"example.com/gpu": parse("1")}
    asking = builders.container("ctr").replace(resources=ResourceRequirements(requests=amounts))
    extended = PodExtendedResourceClaimStatus(
        request_mappings=[
            ContainerExtendedResourceRequest(**dict(zip(FIELDS, each, strict=True)))
            for each in mappings
        ],
        resource_claim_name=claim,
    )
    status = {"extended_resource_claim_status": extended}
    found = faults(builders.pod(status=status, **{field: [asking]}))  # type: ignore[arg-type] # spec
    assert len(found) == len(complaints)
    for text, complaint in zip(found, complaints, strict=True):
        assert text.startswith(f"status.extendedResourceClaimStatus.{complaint}")
