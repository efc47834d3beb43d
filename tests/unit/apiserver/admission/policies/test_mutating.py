"""Mutations by policies, over watch caches that the test fills.

The cases follow TestApplyConfiguration and TestJSONPatch in patch/{smd,json_patch}_test.go, and
TestDispatcher in dispatcher_test.go, of
staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating, Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kcm.api import codec
from kcm.api.admissionregistration_v1 import CONNECT, CREATE
from kcm.api.apps_v1 import Deployment
from kcm.api.core_v1 import ConfigMap, Pod
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.admission.policies.index import MutatingPolicyIndex
from kcm.apiserver.admission.policies.metrics import MutationMetrics
from kcm.apiserver.admission.policies.mutating import PolicyMutations
from kcm.apiserver.admission.request import AdmissionRequest
from kcm.apiserver.auth.attributes import ADMIN
from kcm.apiserver.auth.authorizer import AlwaysAllow, Caller
from kcm.apiserver.http_errors import InternalError, PolicyDenied
from kcm.store.admission.plugin import Reinvocation
from tests.unit.apiserver.auth.caches import FakeHub

GROUP = "admissionregistration.k8s.io/v1"
RULE = {
    "apiGroups": ["*"],
    "apiVersions": ["v1"],
    "operations": ["*"],
    "resources": ["deployments", "configmaps"],
}
RESOURCE = Deployment.resource
CONTAINERS = [{"name": "a"}, {"name": "b"}, {"name": "c"}]


def make(kind: str, name: str, spec: dict[str, Any]) -> KubeObject:
    body = {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec}
    return codec.decode(body, BUILT_IN)


def policy(name: str, *mutations: dict[str, Any], **spec: Any) -> KubeObject:
    body = {"matchConstraints": {"resourceRules": [RULE]}, "mutations": list(mutations), **spec}
    return make("MutatingAdmissionPolicy", name, body)


def binding(of: str, name: str = "b", **spec: Any) -> KubeObject:
    return make("MutatingAdmissionPolicyBinding", name, {"policyName": of, **spec})


def apply(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patch(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def deployment(**body: Any) -> KubeObject:
    metadata = {"name": "d", "namespace": "default", **body.pop("metadata", {})}
    whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, **body}
    return codec.decode(whole, BUILT_IN)


class Mutations:
    """Policies and bindings, and what they make of a write."""

    def __init__(self, *objects: KubeObject) -> None:
        hub = FakeHub(*objects)
        self._index = MutatingPolicyIndex(hub)
        self.registry = CollectorRegistry()
        self._mutations = PolicyMutations(hub, MutationMetrics(self.registry))

    def admit(
        self,
        new: KubeObject | None,
        old: KubeObject | None = None,
        before: Reinvocation | None = None,
    ) -> tuple[WriteAttributes, Reinvocation]:
        shown = new or old
        assert shown is not None
        resource, namespace = shown.resource, shown.namespace or ""
        write = WriteAttributes(CREATE, resource, "", namespace, shown.name, new, old, ADMIN)
        found = self._index.find(resource, "", CREATE)
        request = AdmissionRequest(caller=Caller(ADMIN, AlwaysAllow()), namespace=namespace)
        return self._mutations.admit(found, write, request, before)

    def connect(self, sent: dict[str, Any]) -> WriteAttributes:
        """Returns what becomes of an exec in the pod `p`."""
        write = WriteAttributes(
            CONNECT, Pod.resource, "exec", "default", "p", None, None, ADMIN, sent=sent
        )
        matching = self._index.find(Pod.resource, "exec", CONNECT)
        request = AdmissionRequest(caller=Caller(ADMIN, AlwaysAllow()), namespace="default")
        return self._mutations.admit(matching, write, request, None)[0]


def mutate(mutation: dict[str, Any], new: KubeObject, old: KubeObject | None = None) -> Any:
    write, _ = Mutations(policy("p", mutation), binding("p")).admit(new, old)
    assert write.new is not None
    return codec.to_dict(write.new)


@pytest.mark.parametrize(
    ("expression", "spec", "wanted"),
    [
        ('Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{'
         'volumes: [Object.spec.template.spec.volumes{name: "y"}]}}}}',
         {"template": {"spec": {"volumes": [{"name": "x", "emptyDir": {}}]}}},
         {"volumes": [{"name": "x", "emptyDir": {}}, {"name": "y", "emptyDir": {}}]}),
        ('Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{'
         'volumes: [Object.spec.template.spec.volumes{name: "y", '
         'hostPath: Object.spec.template.spec.volumes.hostPath{path: "a"}}]}}}}',
         {"template": {"spec": {"volumes": [{"name": "y"}]}}},
         {"volumes": [{"name": "y", "hostPath": {"path": "a", "type": ""}}]}),
        ('Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{'
         'containers: [Object.spec.template.spec.containers{name: "nginx", '
         'env: [Object.spec.template.spec.containers.env{name: "test", value: "c"}]}]}}}}',
         {"template": {"spec": {"containers": [
             {"name": "nginx", "env": [{"name": "test", "value": "a"},
                                       {"name": "test", "value": "b"},
                                       {"name": "foo", "value": "bar"}]}]}}},
         {"env": [{"name": "test", "value": "c"}, {"name": "foo", "value": "bar"}]}),
    ],
)  # fmt: skip
def test_a_configuration_is_merged_into_keyed_lists(
    expression: str, spec: dict[str, Any], wanted: dict[str, Any]
) -> None:
    pod = mutate(apply(expression), deployment(spec=spec))["spec"]["template"]["spec"]
    found = pod if "volumes" in wanted else pod["containers"][0]
    assert {name: found[name] for name in wanted} == wanted


def test_a_configuration_sees_the_object_and_the_old_one() -> None:
    by = "replicas: {0}.spec.replicas % 2 == 0 ? {0}.spec.replicas + 1 : {0}.spec.replicas"
    two, one = deployment(spec={"replicas": 2}), deployment(spec={"replicas": 1})
    new = apply("Object{spec: Object.spec{" + by.format("object") + "}}")
    assert mutate(new, two)["spec"]["replicas"] == 3
    old = apply("Object{spec: Object.spec{" + by.format("oldObject") + "}}")
    assert mutate(old, one, two)["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        (apply("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'l': 'v'}}}"
               "}"),
         "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or "
         "structs: .spec.selector"),
        (apply("Object{spec: Object.specx{replicas: 1}}"),
         'type mismatch: unexpected type name "Object.specx", expected "Object.spec", which '
         "matches field name path from root Object type"),
        (apply("Object{spec: Object.spec{replicasx: 1}}"),
         "error applying patch: failed to convert patch object to typed object: "
         ".spec.replicasx: field not declared in schema"),
        (apply('"I am a teapot!"'), "must evaluate to Object but got string"),
        (apply("Object.spec.metadata{}"),
         "must evaluate to Object but got Object.spec.metadata"),
        (patch('[JSONPatch{op: "replace", path: "/spec/template/spec/containers/-", '
               'value: {"name": "x"}}]'),
         "JSON Patch: the server rejected our request: replace operation does not apply: doc is "
         "missing key: /spec/template/spec/containers/-: missing value"),
    ],
)  # fmt: skip
def test_a_mutation_that_cannot_be_made_refuses_the_write(
    mutation: dict[str, Any], why: str
) -> None:
    new = deployment(spec={"replicas": 1, "template": {"spec": {"containers": CONTAINERS}}})
    with pytest.raises(PolicyDenied) as denied:
        mutate(mutation, new)
    assert denied.value.message == f"policy 'p' with binding 'b' denied request: {why}"
    assert (denied.value.code, denied.value.reason) == (403, "Invalid")
    ignoring = Mutations(policy("p", mutation, failurePolicy="Ignore"), binding("p"))
    assert ignoring.admit(new)[0].new == new


def op(kind: str, path: str, **more: str) -> str:
    fields = "".join(f", {name}: {value}" for name, value in more.items())
    return f'JSONPatch{{op: "{kind}", path: "{path}"{fields}}}'


@pytest.mark.parametrize(
    ("operations", "labels", "wanted"),
    [
        ([op("test", "/metadata/labels/x", value='"9"'), op("remove", "/metadata/labels/x")],
         {"x": "1"}, {"x": "1"}),
        ([op("test", "/metadata/labels/x", value='"1"'), op("remove", "/metadata/labels/y")],
         {"x": "1", "y": "1"}, {"x": "1"}),
        (["JSONPatch{op: 'copy', from: '/metadata/labels/x', path: '/metadata/labels/y'}"],
         {"x": "1"}, {"x": "1", "y": "1"}),
        (["JSONPatch{op: 'move', from: '/metadata/labels/x', path: '/metadata/labels/y'}"],
         {"x": "1"}, {"y": "1"}),
        ([op("add", "/metadata/labels/x", value='"2"')], {"y": "1"}, {"x": "2", "y": "1"}),
        ([op("add", "/metadata/labels", value='{"y": "2"}')], {"x": "1"}, {"y": "2"}),
        ([op("replace", "/metadata/labels", value='{"y": "2"}')], None, {"y": "2"}),
        (['JSONPatch{op: "add", path: "/metadata/labels", value: {"op": JSONPatch{op: "o"}.op, '
          '"unset": string(has(JSONPatch{}.op)), "same": string(JSONPatch{} == JSONPatch{}), '
          '"other": string(JSONPatch{op: "a"} == JSONPatch{op: "b"})}}'],
         {}, {"op": "o", "unset": "false", "same": "true", "other": "false"}),
        ([op("add", "/metadata/labels", value="{}"),
          'JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("k8s.io/x~y"), '
          'value: "true"}'],
         {}, {"k8s.io/x~y": "true"}),
    ],
)  # fmt: skip
def test_operations_change_the_object_one_after_the_other(
    operations: list[str], labels: dict[str, str] | None, wanted: dict[str, str]
) -> None:
    new = deployment(metadata={"labels": labels} if labels is not None else {})
    assert mutate(patch(f"[{', '.join(operations)}]"), new)["metadata"]["labels"] == wanted


@pytest.mark.parametrize(
    ("operation", "names"),
    [
        (op("remove", "/spec/template/spec/containers/1"), "ac"),
        (op("add", "/spec/template/spec/containers/0", value='{"name": "x"}'), "xabc"),
        (op("add", "/spec/template/spec/containers/-",
            value='Object.spec.template.spec.containers{name: "x", '
                  "ports: [Object.spec.template.spec.containers.ports{containerPort: 8080}]}"),
         "abcx"),
    ],
)  # fmt: skip
def test_operations_change_lists(operation: str, names: str) -> None:
    new = deployment(spec={"template": {"spec": {"containers": CONTAINERS}}})
    changed = mutate(patch(f"[{operation}]"), new)["spec"]["template"]["spec"]["containers"]
    assert "".join(container["name"] for container in changed) == names


def test_what_is_added_gets_its_defaults() -> None:
    port = "[Object.spec.template.spec.containers.ports{containerPort: 80}]"
    containers = f'[Object.spec.template.spec.containers{{name: "a", ports: {port}}}]'
    pod = f"Object.spec.template.spec{{containers: {containers}}}"
    expression = f"Object{{spec: Object.spec{{template: Object.spec.template{{spec: {pod}}}}}}}"
    changed = mutate(apply(expression), deployment(spec={}))
    [container] = changed["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_each_parameter_changes_the_object() -> None:
    params = [
        ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={name: "yes"})
        for name in ("one", "two")
    ]
    mutation = apply("Object{metadata: Object.metadata{annotations: params.data}}")
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    reference = {"selector": {}, "parameterNotFoundAction": "Deny"}
    changed, _ = Mutations(
        policy("p", mutation, paramKind=kind), binding("p", paramRef=reference), *params
    ).admit(deployment())
    assert changed.new is not None
    assert changed.new.annotations == {"one": "yes", "two": "yes"}


def label(name: str, value: str = '"yes"') -> dict[str, Any]:
    return apply(f'Object{{metadata: Object.metadata{{labels: {{"{name}": {value}}}}}}}')


def test_a_policy_sees_what_those_before_it_have_changed() -> None:
    second = {"matchConditions": [{"name": "c", "expression": "'one' in object.metadata.labels"}]}
    both = Mutations(
        policy("a", label("one")), binding("a", "a"),
        policy("b", label("two"), **second), binding("b", "b"),
    )  # fmt: skip
    write, state = both.admit(deployment(metadata={"labels": {}}))
    assert write.new is not None
    assert write.new.labels == {"one": "yes", "two": "yes"}
    assert state.changed


def test_a_policy_is_run_again_if_it_is_needed_and_wants_it() -> None:
    count = "string('n' in object.metadata.labels ? int(object.metadata.labels.n) + 1 : 1)"
    for wants, runs in (("IfNeeded", "2"), ("Never", "1")):
        both = Mutations(
            policy("a", label("n", count), reinvocationPolicy=wants), binding("a", "a"),
            policy("b", label("other")), binding("b", "b"),
        )  # fmt: skip
        first, state = both.admit(deployment(metadata={"labels": {}}))
        second, _ = both.admit(first.new, before=state)
        assert second.new is not None
        assert second.new.labels == {"n": runs, "other": "yes"}


def test_nobody_is_asked_again_if_nothing_has_changed_since() -> None:
    only = Mutations(policy("a", label("x"), reinvocationPolicy="IfNeeded"), binding("a"))
    first, state = only.admit(deployment(metadata={"labels": {"x": "yes"}}))
    assert not state.changed
    again, _ = only.admit(first.new, before=state)
    assert again.new is first.new


def test_a_fault_of_the_configuration_refuses_with_another_reason() -> None:
    wrong = policy("p", label("x"), paramKind={"apiVersion": "v9", "kind": "Nothing"})
    with pytest.raises(PolicyDenied) as denied:
        Mutations(wrong, binding("p")).admit(deployment())
    assert denied.value.message == (
        'policy "p" denied request: failed to configure policy: failed to find resource referenced '
        "by paramKind: 'v9, Kind=Nothing'"
    )
    assert (denied.value.code, denied.value.reason) == (403, "Forbidden")


def test_mutations_are_counted_by_what_was_wrong() -> None:
    some = Mutations(policy("p", label("x"), apply("1"), failurePolicy="Ignore"), binding("p"))
    some.admit(deployment())

    def count(error_type: str) -> float | None:
        labels = {"policy": "p", "policy_binding": "b", "error_type": error_type}
        name = "apiserver_mutating_admission_policy_check_total"
        return some.registry.get_sample_value(name, labels)

    assert (count("no_error"), count("invalid_error")) == (1.0, 1.0)


def test_a_patch_that_adds_an_unknown_field_is_an_internal_error() -> None:
    port = "[Object.spec.template.spec.containers.ports{containerPortZ: 8080}]"
    value = f'Object.spec.template.spec.containers{{name: "x", ports: {port}}}'
    operation = op("add", "/spec/template/spec/containers/-", value=value)
    new = deployment(spec={"template": {"spec": {"containers": [{"name": "a"}]}}})
    with pytest.raises(InternalError) as failed:
        mutate(patch(f"[{operation}]"), new)
    assert failed.value.message == (
        "Internal error occurred: strict decoding error: unknown field "
        '"spec.template.spec.containers[1].ports[0].containerPortZ"'
    )


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_the_options_of_a_connection_are_not_changed(failure_policy: str) -> None:
    rule = RULE | {"operations": ["CONNECT"], "resources": ["pods/exec"]}
    constraints = {"resourceRules": [rule]}
    changing = policy(
        "p",
        patch('[JSONPatch{op: "add", path: "/stdin", value: true}]'),
        matchConstraints=constraints,
        failurePolicy=failure_policy,
    )
    mutations = Mutations(changing, binding("p"))
    sent = {"apiVersion": "v1", "kind": "PodExecOptions", "stdin": False}
    if failure_policy == "Fail":
        with pytest.raises(PolicyDenied, match="options of a connection"):
            mutations.connect(sent)
    else:
        assert mutations.connect(sent).sent == sent
