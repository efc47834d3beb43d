"""Tests the rules of single kinds for creates, updates and deletes."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec, scheme
from kcm.api.batch_v1 import Job
from kcm.api.core_v1 import Pod, PodStatus
from kcm.api.policy_v1 import PodDisruptionBudget
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.options import DeleteOptions, Subresource
from kcm.store.rules import prepare_create, prepare_modification
from kcm.store.strategies.kinds import TEMPLATE_GENERATION
from kcm.store.writes.deletion import prepare_delete
from kcm.testing import builders
from tests.samples import manifest, sample, with_spec

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
SLICES = "endpointslices.discovery.k8s.io"


def create(obj: Any) -> Any:
    return prepare_create(obj, obj.resource, builders.START, rng=random.Random(1))


def update(new: Any, old: Any) -> Any:
    return prepare_modification(new, old, old.resource)


def generation(obj: KubeObject) -> int | None:
    return obj.metadata.generation


@pytest.mark.parametrize("resource", BUILT_IN.resources(), ids=str)
def test_every_kind_can_be_created_and_an_update_without_change_is_none(
    resource: scheme.Resource,
) -> None:
    obj = create(sample(resource.name))
    assert update(obj, obj) is obj
    assert update(sample(resource.name), obj) is obj
    without_defaults = codec.decode(manifest(resource.name), BUILT_IN, strict=True)
    assert update(without_defaults, obj) is obj


def test_a_status_sent_with_a_new_object_is_dropped() -> None:
    created = create(sample("deployments.apps", **manifest_status(replicas=3)))
    assert created.status.replicas is None


COUNTED = (
    *("pods", "podtemplates", "replicationcontrollers", "cronjobs.batch", "jobs.batch"),
    *("daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps"),
    *("ingresses.networking.k8s.io", "ingressclasses.networking.k8s.io"),
    *("networkpolicies.networking.k8s.io", "endpointslices.discovery.k8s.io"),
    *("poddisruptionbudgets.policy", "priorityclasses.scheduling.k8s.io"),
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
)


@pytest.mark.parametrize("resource", BUILT_IN.resources(), ids=str)
def test_a_new_object_has_a_generation_if_its_kind_counts_changes(
    resource: scheme.Resource,
) -> None:
    is_counted = resource.name in COUNTED or resource.group == "admissionregistration.k8s.io"
    if resource.group != "resource.k8s.io":  # three of its kinds count
        assert generation(create(sample(resource.name))) == (1 if is_counted else None)


QUANTITIES = {"requests": {"cpu": "1"}}
EQUAL = {"limits": {"cpu": "1", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [({}, "BestEffort"), (QUANTITIES, "Burstable"), (EQUAL, "Guaranteed")],
)
def test_a_pod_has_its_quality_of_service_from_its_creation_and_keeps_it(
    resources: dict[str, Any], quality: str
) -> None:
    containers = [{"name": "c", "image": "i", "resources": resources}]
    old = create(sample("pods", spec={"containers": containers}))
    assert old.status.qos_class == quality
    bare = old.with_status(PodStatus(phase="Running"))
    kept: Any = prepare_modification(bare, old, Pod.resource, Subresource.STATUS)
    assert (kept.status.phase, kept.status.qos_class) == ("Running", quality)
    other = old.with_status(old.status.replace(qos_class="Other"))
    with pytest.raises(errors.Invalid, match=r"status\.qosClass.*field is immutable"):
        prepare_modification(other, old, Pod.resource, Subresource.STATUS)
    before = old.with_status(PodStatus())  # stored before it was computed
    prepare_modification(old, before, Pod.resource, Subresource.STATUS)


def manifest_status(**status: Any) -> dict[str, Any]:
    return {"status": status, "spec": manifest("deployments.apps")["spec"]}


def test_a_deployment_has_a_new_generation_when_spec_or_annotations_change() -> None:
    old = create(sample("deployments.apps"))
    assert generation(old) == 1
    assert generation(update(old.with_spec(old.spec.replace(paused=True)), old)) == 2
    assert generation(update(old.with_metadata(annotations={"a": "b"}), old)) == 2
    assert generation(update(old.with_metadata(labels={"a": "b"}), old)) == 1


def test_an_endpoint_slice_has_a_new_generation_when_what_it_says_changes() -> None:
    old = create(sample(SLICES))
    assert generation(old) == 1
    assert generation(update(old.replace(endpoints=[]), old)) == 2
    assert generation(update(old.with_metadata(labels={"a": "b"}), old)) == 2
    assert generation(update(old.with_metadata(finalizers=["a/b"]), old)) == 1


def test_services_have_no_generation() -> None:
    old = create(sample("services"))
    assert generation(old) is None
    new = update(old.with_spec(old.spec.replace(selector={"app": "api"})), old)
    assert generation(new) is None


@pytest.mark.parametrize("kind", ["resourcequotas", "limitranges"])
def test_quotas_and_limit_ranges_have_no_generation(kind: str) -> None:
    old = create(sample(kind))
    assert generation(old) is None
    assert generation(update(old.replace(spec=type(old.spec)()), old)) is None


def test_the_one_address_of_a_service_is_the_first_of_its_addresses() -> None:
    assert create(with_spec("services", clusterIP="None")).spec.cluster_ips == ["None"]
    assert create(sample("services")).spec.cluster_ips is None


def test_an_update_that_leaves_out_addresses_and_ports_keeps_them() -> None:
    port = {"port": 80, "nodePort": 30080}
    old = create(with_spec("services", type="NodePort", clusterIP="10.0.0.1", ports=[port]))
    spec = update(with_spec("services", type="NodePort", selector={"a": "b"}), old).spec
    assert (spec.cluster_ip, spec.cluster_ips) == ("10.0.0.1", ["10.0.0.1"])
    assert [item.node_port for item in spec.ports] == [30080]
    assert spec.selector == {"a": "b"}


def test_a_node_port_that_the_update_gives_to_another_port_is_not_kept_twice() -> None:
    old = create(with_spec("services", type="NodePort", ports=[{"port": 80, "nodePort": 30080}]))
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30080}]
    spec = update(with_spec("services", type="NodePort", ports=ports), old).spec
    assert [port.node_port for port in spec.ports] == [None, 30080]


def test_the_health_check_port_of_a_load_balancer_is_kept() -> None:
    local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
    old = create(with_spec("services", **local, healthCheckNodePort=30000))
    new = update(with_spec("services", **local, selector={"a": "b"}), old)
    assert new.spec.health_check_node_port == 30000


def test_a_service_account_keeps_the_names_of_its_secrets_only() -> None:
    secrets = [{"name": "a", "uid": "b"}]
    created = create(sample("serviceaccounts", secrets=secrets))
    assert [(ref.name, ref.uid) for ref in created.secrets] == [("a", None)]
    again = update(sample("serviceaccounts", secrets=secrets), created)
    assert again is created


def test_a_definition_remembers_in_which_versions_it_stored() -> None:
    old = create(sample(DEFINITIONS))
    assert old.status.stored_versions == ["v1"]
    [v1] = manifest(DEFINITIONS)["spec"]["versions"]
    versions = [{**v1, "storage": False}, {**v1, "name": "v2"}]
    new = update(with_spec(DEFINITIONS, versions=versions), old)
    assert new.status.stored_versions == ["v1", "v2"]
    assert generation(new) == 2


def test_a_budgets_status_is_written_apart() -> None:
    budgets = PodDisruptionBudget.resource
    old = create(sample(budgets.name))
    sent = old.with_status(old.status.replace(disruptions_allowed=1))
    assert update(sent, old) is old
    stored = prepare_modification(sent, old, budgets, Subresource.STATUS)
    assert isinstance(stored, PodDisruptionBudget)
    assert stored.status.disruptions_allowed == 1


def test_a_priority_class_has_a_first_generation_and_keeps_it() -> None:
    obj = create(sample("priorityclasses.scheduling.k8s.io"))
    described = obj.replace(description="for the night")
    assert (generation(obj), generation(update(described, obj))) == (1, 1)


def test_a_daemon_set_counts_the_changes_of_its_template() -> None:
    old = create(sample("daemonsets.apps"))
    assert old.annotations[TEMPLATE_GENERATION] == "1"
    spec = old.spec
    labels = {"app": "web", "v": "2"}
    template = spec.template.replace(metadata=spec.template.metadata.replace(labels=labels))
    new = update(old.with_spec(spec.replace(template=template)), old)
    assert new.annotations[TEMPLATE_GENERATION] == "2"
    bare = update(new.with_metadata(annotations=None), new)
    assert bare.annotations[TEMPLATE_GENERATION] == "2"


def test_a_claim_waits_and_has_no_generation() -> None:
    obj = create(sample("persistentvolumeclaims", status={"phase": "Bound"}))
    assert (obj.status.phase, obj.metadata.generation) == ("Pending", None)


def test_a_volume_waits_since_its_creation() -> None:
    volume = create(sample("persistentvolumes"))
    assert volume.status.phase == "Pending"
    assert volume.status.last_phase_transition_time == volume.metadata.creation_timestamp


def test_a_limit_range_without_a_name_is_named_by_its_uid() -> None:
    limits = create(sample("limitranges").with_metadata(name=None))
    assert limits.name == limits.uid
    assert create(sample("limitranges")).name == sample("limitranges").name


def test_finalizers_that_a_namespace_gets_apart_are_checked() -> None:
    namespace = create(sample("namespaces"))
    cleared = namespace.with_spec(namespace.spec.replace(finalizers=None))
    assert prepare_modification(cleared, namespace, namespace.resource, Subresource.FINALIZE) is (
        cleared
    )
    named = namespace.with_spec(namespace.spec.replace(finalizers=["kubernetes", "mine"]))
    with pytest.raises(errors.Invalid, match=r"spec.finalizers\[1\]: Invalid value: \"mine\""):
        prepare_modification(named, namespace, namespace.resource, Subresource.FINALIZE)


def work(**spec: Any) -> Any:
    template = {"spec": manifest("pods")["spec"] | {"restartPolicy": "Never"}}
    return sample("jobs.batch", spec={"template": template, **spec})


def test_a_job_gets_labels_and_a_selector_of_its_own() -> None:
    created = create(work())
    chosen = {"batch.kubernetes.io/controller-uid": created.uid}
    assert created.spec.selector.match_labels == chosen
    labels = created.spec.template.metadata.labels
    named = {"batch.kubernetes.io/job-name": "sample", "job-name": "sample"}
    assert labels == chosen | named | {"controller-uid": created.uid}
    assert (created.metadata.labels, generation(created)) == (labels, 1)


@pytest.mark.parametrize("template", [None, {"app": "a"}])
def test_a_job_whose_name_is_generated_gets_the_labels_of_that_name(
    template: dict[str, str] | None,
) -> None:
    given = work().with_metadata(name=None, generate_name="sample-", labels=None)
    pods = given.spec.template
    labelled = pods.replace(metadata=pods.metadata.replace(labels=template))
    created = create(given.with_spec(given.spec.replace(template=labelled)))
    assert created.name.startswith("sample-")
    labels = created.spec.template.metadata.labels
    assert labels["job-name"] == labels["batch.kubernetes.io/job-name"] == created.name
    assert labels.get("app") == (template or {}).get("app")
    assert created.metadata.labels == labels
    assert created.spec.selector.match_labels == {"batch.kubernetes.io/controller-uid": created.uid}


def test_a_job_with_a_selector_of_its_users_keeps_it() -> None:
    obj = create(sample("jobs.batch"))
    assert obj.spec.template.metadata.labels == {"job-name": "sample"}
    assert obj.spec.selector.match_labels == {"job-name": "sample"}


@pytest.mark.parametrize(
    ("kind", "asked", "expected"),
    [
        ("jobs.batch", None, ("update", ["orphan"])),
        ("jobs.batch", "Background", ("delete", None)),
        ("jobs.batch", "Foreground", ("update", ["foregroundDeletion"])),
        ("replicationcontrollers", None, ("update", ["orphan"])),
        ("cronjobs.batch", None, ("delete", None)),
        ("replicasets.apps", None, ("delete", None)),
    ],
)
def test_jobs_and_replication_controllers_leave_their_pods_unless_told_otherwise(
    kind: str, asked: Any, expected: tuple[str, Any]
) -> None:
    options = DeleteOptions(propagation_policy=asked)
    op, obj = prepare_delete(create(sample(kind)), BUILT_IN.by_name(kind), options, builders.START)
    assert (op, obj.metadata.finalizers) == expected


def test_what_was_decided_before_stands() -> None:
    jobs = Job.resource
    old = create(sample("jobs.batch"))
    foreground = DeleteOptions(propagation_policy="Foreground")
    _, going = prepare_delete(old, jobs, foreground, builders.START)
    _, again = prepare_delete(going, jobs, DeleteOptions(), builders.START)
    assert again.metadata.finalizers == ["foregroundDeletion"]


@pytest.mark.parametrize(
    ("passed", "first", "asked", "expected"),
    [
        (0, 1, -1, ("update", 1, 1)),
        (0, 1, 0, ("delete", 0, 0)),
        (0, 1, 2, ("update", 1, 1)),
        (0, 2, -1, ("update", 1, 1)),
        (0, 2, 0, ("delete", 0, 0)),
        (0, 2, 1, ("update", 1, 1)),
        (0, 2, 2, ("update", 2, 2)),
        (0, 60, None, ("update", 60, 60)),  # the 30 seconds of the pod ask for nothing
        (40, 60, 50, ("update", 50, 50)),
        (120, 60, 50, ("update", 120, 1)),
        (120, 60, 0, ("delete", 120, 0)),
    ],
)
def test_a_second_delete_of_a_pod_only_shortens_its_grace(
    passed: int, first: int, asked: int | None, expected: tuple[str, int, int]
) -> None:
    """Upstream's TestBeforeDelete of apiserver/pkg/registry/rest. `expected` has the operation, the
    pod's deletion timestamp in seconds since the first delete, and its grace period.
    """
    pods, old = Pod.resource, builders.pod("web", node="n1")
    op, going = prepare_delete(old, pods, DeleteOptions(first), builders.START)
    assert op == "update"
    now = builders.START + timedelta(seconds=passed)
    op, again = prepare_delete(going, pods, DeleteOptions(asked), now)
    meta = again.metadata
    assert meta.deletion_timestamp is not None
    end = (meta.deletion_timestamp - builders.START).total_seconds()
    assert (op, end, meta.deletion_grace_period_seconds) == expected


def test_a_delete_that_asks_for_no_less_changes_nothing_of_a_pod() -> None:
    pods, old = Pod.resource, builders.pod("web", node="n1")
    _, going = prepare_delete(old, pods, DeleteOptions(), builders.START)
    ended = going.with_status(PodStatus(phase="Succeeded"))
    foreground = DeleteOptions(propagation_policy="Foreground")
    assert prepare_delete(ended, pods, foreground, builders.START) == ("update", ended)


def test_a_status_of_a_pod_cannot_take_observed_generations_back() -> None:
    old = create(builders.pod("a")).with_metadata(generation=2)
    ready = {"type": "Ready", "status": "True"}
    observed = PodStatus.model_validate(
        {"observedGeneration": 2, "conditions": [ready | {"observedGeneration": 2}]}
    )
    old = old.with_status(observed)
    said = {"conditions": [ready | {"status": "False"}, {"type": "Mine", "status": "True"}]}
    new: Any = prepare_modification(
        old.with_status(PodStatus.model_validate(said)), old, old.resource, Subresource.STATUS
    )
    assert new.status.observed_generation == 2
    assert [c.observed_generation for c in new.status.conditions or ()] == [2, None]
