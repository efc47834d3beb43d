"""What differs by kind when objects are created and updated."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api import scheme
from kcm.api.meta_v1 import KubeObject
from kcm.store.rules import prepare_create, prepare_status_update, prepare_update
from tests import builders
from tests.samples import manifest, sample, with_spec

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
SLICES = "endpointslices.discovery.k8s.io"


def create(obj: Any) -> Any:
    return prepare_create(obj, scheme.resource_of(obj), builders.START)


def update(new: Any, old: Any) -> Any:
    return prepare_update(new, old, scheme.resource_of(old))


def generation(obj: KubeObject) -> int | None:
    return obj.metadata.generation


@pytest.mark.parametrize("resource", scheme.resources(), ids=str)
def test_every_kind_can_be_created_and_an_update_without_change_is_none(
    resource: scheme.Resource,
) -> None:
    obj = create(sample(resource.name))
    assert update(obj, obj) is obj
    again = sample(resource.name)
    assert update(again, obj) is obj


def test_a_status_sent_with_a_new_object_is_dropped() -> None:
    created = create(sample("deployments.apps", **manifest_status(replicas=3)))
    assert created.status.replicas is None


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


def test_the_one_address_of_a_service_is_the_first_of_its_addresses() -> None:
    assert create(with_spec("services", clusterIP="None")).spec.cluster_ips == ["None"]
    assert create(sample("services")).spec.cluster_ips is None


def test_an_update_that_leaves_out_addresses_and_ports_keeps_them() -> None:
    port = {"port": 80, "nodePort": 30080}
    old = create(with_spec("services", type="NodePort", clusterIP="10.0.0.1", ports=[port]))
    spec = update(with_spec("services", type="NodePort", selector={"a": "b"}), old).spec
    assert (spec.cluster_ip, spec.cluster_ips) == ("10.0.0.1", ["10.0.0.1"])
    assert [found.node_port for found in spec.ports] == [30080]
    assert spec.selector == {"a": "b"}


def test_a_node_port_that_the_update_gives_to_another_port_is_not_kept_twice() -> None:
    old = create(with_spec("services", type="NodePort", ports=[{"port": 80, "nodePort": 30080}]))
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30080}]
    spec = update(with_spec("services", type="NodePort", ports=ports), old).spec
    assert [found.node_port for found in spec.ports] == [None, 30080]


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
    budgets = scheme.by_name("poddisruptionbudgets.policy")
    old = create(sample(budgets.name))
    sent = old.with_status(old.status.replace(disruptions_allowed=1))
    assert update(sent, old) is old
    assert prepare_status_update(sent, old, budgets).status.disruptions_allowed == 1  # type: ignore[attr-defined] # budgets have it
