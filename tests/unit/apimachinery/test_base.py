"""Names of fields in JSON, copies that share, unknown fields."""

import copy
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.core_v1.pods import PodStatus
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.base import Model, compact, drop_unknown, to_wire
from kcm.testing import builders
from tests.typed_objects import decode_as


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("pod_ip", "podIP"),
        ("host_ips", "hostIPs"),
        ("host_pid", "hostPID"),
        ("host_ipc", "hostIPC"),
        ("pod_cidr", "podCIDR"),
        ("pod_cidrs", "podCIDRs"),
        ("provider_id", "providerID"),
        ("system_uuid", "systemUUID"),
        ("machine_id", "machineID"),
        ("boot_id", "bootID"),
        ("container_id", "containerID"),
        ("cluster_ip", "clusterIP"),
        ("set_hostname_as_fqdn", "setHostnameAsFQDN"),
        ("uid", "uid"),
        ("ip", "ip"),
        ("api_version", "apiVersion"),
        ("qos_class", "qosClass"),
        ("http_get", "httpGet"),
        ("os_image", "osImage"),
        ("dns_policy", "dnsPolicy"),
    ],
)
def test_a_python_name_becomes_the_name_that_kubernetes_uses(name: str, wire: str) -> None:
    assert to_wire(name) == wire


def test_a_copy_with_other_metadata_shares_spec_and_status_and_leaves_the_original() -> None:
    original = builders.pod("web-1")
    copy = original.with_metadata(name="web-2", labels={"a": "b"})
    assert (copy.name, original.name) == ("web-2", "web-1")
    assert original.labels == {}
    assert copy.spec is original.spec
    assert copy.status is original.status


def test_a_copy_with_another_status_shares_metadata_and_spec() -> None:
    original = builders.pod()
    copy = original.with_status(PodStatus(phase="Failed"))
    assert (copy.status.phase, original.status.phase) == ("Failed", "Pending")
    assert copy.metadata is original.metadata


def test_a_copy_with_another_spec_shares_metadata_and_status() -> None:
    original = builders.pod()
    copy = original.with_spec(original.spec.replace(node_name="n2"))
    assert (copy.spec.node_name, original.spec.node_name) == ("n2", None)
    assert copy.status is original.status


def test_a_copy_keeps_unknown_fields() -> None:
    original = Pod.model_validate({"metadata": {"name": "a", "new": [1]}, "later": {"x": None}})
    copy = original.with_metadata(name="b")
    assert copy.metadata.model_extra == {"new": [1]}
    assert copy.model_extra == {"later": {"x": None}}


def test_a_misspelt_field_is_refused_rather_than_written() -> None:
    with pytest.raises(TypeError, match="ObjectMeta has no field lables"):
        builders.pod().with_metadata(lables={})


def test_keys_are_namespace_and_name_or_just_the_name() -> None:
    assert builders.pod("a", namespace="b").key == "b/a"
    assert builders.node("n1").key == "n1"
    assert Pod().key == ""


def test_reading_labels_of_an_object_without_any_gives_an_empty_map() -> None:
    assert Pod().labels == {}
    assert Pod().annotations == {}
    assert Pod().uid == ""


def test_an_object_with_a_deletion_timestamp_is_being_deleted() -> None:
    assert builders.pod(deleting=builders.START).deleting
    assert not builders.pod().deleting


def test_a_compacted_object_is_the_same_object_in_every_visible_way() -> None:
    pod = builders.pod(owner=builders.replica_set(), ready=True, labels={"a": "b"})
    data = codec.encode(pod)
    lean = decode_as(Pod, data)
    assert compact(lean) is lean
    assert lean == codec.decode(data, BUILT_IN)
    assert codec.encode(lean) == data
    assert "status" in lean.model_fields_set
    copy = lean.with_spec(lean.spec.replace(node_name="n1")).with_metadata(name="x")
    assert copy.spec.model_fields_set == {"node_name"}
    assert lean.spec.model_fields_set == set()


def shared_pod() -> Pod:
    pod = builders.pod(owner=builders.replica_set(), ready=True, labels={"a": "b"})
    wire = codec.to_dict(pod)
    wire["later"] = {"x": 1}
    wire["spec"]["soon"] = 1
    return compact(codec.decode(wire, Pod.resource, keep_unknown=True))


def test_a_cached_object_refuses_assignments_wherever_they_are_made() -> None:
    pod = shared_pod()
    before = codec.encode(pod)
    owners = pod.metadata.owner_references or []
    for struct, name in (
        (pod, "kind"), (pod, "typo"), (pod.metadata, "name"), (pod.spec, "nodename"),
        (pod.spec.containers[0], "image"), (pod.status, "phase"), (owners[0], "uid"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"cached objects are shared: use replace\(\)"):
            setattr(struct, name, "x")
        with pytest.raises(TypeError, match="cached objects are shared"):
            delattr(struct, name)
    for struct in (pod, pod.spec, pod.metadata):
        assert struct.model_extra is not None
        with pytest.raises(TypeError, match="cached objects are shared"):
            struct.model_extra["typo"] = "x"
        with pytest.raises(TypeError, match="cached objects are shared"):
            struct.model_extra.update(typo="x")
    assert codec.encode(pod) == before


def test_one_objects_typo_is_in_no_other_object() -> None:
    first, second = shared_pod(), shared_pod()
    mine = first.with_spec(first.spec.replace(node_name="n1"))
    setattr(mine.spec, "nodename", "typo")  # noqa: B010 - mypy knows that it is no field
    assert mine.spec.model_extra == {"soon": 1, "nodename": "typo"}
    assert "typo" not in codec.encode(first).decode() + codec.encode(second).decode()


@pytest.mark.parametrize(
    "make_copy", [copy.copy, copy.deepcopy, lambda pod: pod.model_copy(), lambda pod: pod.replace()]
)
def test_the_copy_of_a_cached_object_may_be_changed(make_copy: Callable[[Pod], Pod]) -> None:
    mine = make_copy(shared_pod())
    mine.kind = "Other"
    setattr(mine, "typo", "x")  # noqa: B010 - mypy knows that it is no field
    assert mine.model_extra == {"later": {"x": 1}, "typo": "x"}
    assert mine.model_fields_set >= {"kind", "spec"}


def test_unknown_fields_are_dropped_at_any_depth_and_the_rest_is_shared() -> None:
    wire = codec.to_dict(builders.pod(labels={"a": "b"}))
    clean = codec.decode(wire, Pod.resource, keep_unknown=True)
    assert drop_unknown(clean) is clean
    wire["later"] = wire["spec"]["containers"][0]["soon"] = {"x": 1}
    strange = codec.decode(wire, Pod.resource, keep_unknown=True)
    kept = drop_unknown(strange)
    assert (kept, kept.metadata) == (clean, strange.metadata)
    assert kept.metadata is strange.metadata
    assert codec.encode(kept) == codec.encode(clean)


class Leaf(Model):
    """A struct at the bottom."""

    name: str = ""


class Branch(Model):
    """A struct with others in a list, in a map, and with itself."""

    leaves: list[Leaf] | None = None
    by_name: dict[str, Leaf] | None = None
    branches: "list[Branch] | None" = None


def test_a_struct_has_its_schema_before_the_class_that_has_it() -> None:
    class Tree(Model):
        root: Branch | None = None

    assert not Leaf.__pydantic_complete__
    tree = Tree.model_validate_json('{"root": {"branches": [{"leaves": [{"name": "a"}]}]}}')
    assert [each.__pydantic_complete__ for each in (Leaf, Branch, Tree)] == [True, True, True]
    assert Tree.model_rebuild() is None
    assert tree.root is not None
    assert tree.root.branches == [Branch(leaves=[Leaf(name="a")])]


def test_a_fault_below_a_struct_with_a_schema_is_told_with_its_path() -> None:
    with pytest.raises(ValidationError) as failed:
        Branch.model_validate_json('{"branches": [{"byName": {"b": {"name": 1}}}]}')
    assert failed.value.errors()[0]["loc"] == ("branches", 0, "byName", "b", "name")


def test_a_class_of_a_function_may_name_one_that_comes_later() -> None:
    class Early(Model):
        late: "Late | None" = None

    class Late(Model):
        name: str = ""

    Early.model_rebuild()
    assert Early.model_validate_json('{"late": {"name": "a"}}').late == Late(name="a")
