"""Explanations of objects in a control plane."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcm import errors
from kcm.testing import ControlPlane
from tests.integration.testing.objects import WEB

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c}
spec:
  storageClassName: nope
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
"""
BIG = WEB.replace("main,", "main, resources: {requests: {cpu: 999}},")


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane(nodes=1) as started:
        yield started


def test_a_deployment_that_does_not_come_up(control_plane: ControlPlane) -> None:
    control_plane.apply(BIG)
    control_plane.eventually(lambda: "Insufficient cpu" in str(control_plane.list("pods")))
    said = control_plane.explain("deployment/web")
    assert (said.exists, said.state) == (True, "0 of 2 ready")
    assert any("and 1 more: it has no node: 0/1 nodes" in wait for wait in said.waits)
    assert {(c.type, c.status) for c in said.conditions} >= {("Available", "False")}
    (replica_set,) = said.dependents
    assert [pod.title.partition("-")[0] for pod in replica_set.dependents] == ["Pod web"] * 2
    assert [sync.end.controller for sync in said.syncs] == ["deployment-controller"]
    assert said.history[0].event == "ADDED"
    pod = control_plane.list("pods")[0]["metadata"]["name"]
    own = control_plane.explain(f"pod/{pod}")
    assert [owner.title for owner in own.owners] == [replica_set.title, "Deployment web"]
    assert [sync.end.controller for sync in own.syncs] == ["default-scheduler"]
    text = str(said)
    for part in (
        "waits:",
        "conditions:",
        "owns:",
        "last syncs:",
        "last writes:",
        "ReplicaSet web-",
    ):
        assert part in text

    control_plane.delete("deployment/web")
    control_plane.eventually(lambda: not control_plane.list("pods"))
    gone = control_plane.explain(f"pod/{pod}")
    assert (gone.exists, gone.history[-1].event) == (False, "DELETED")
    assert "removed by garbage-collector-controller" in gone.state


def test_an_event_about_an_object(control_plane: ControlPlane) -> None:
    control_plane.apply(CLAIM)
    control_plane.eventually(lambda: control_plane.explain("pvc/c").events)
    (event,) = control_plane.explain("pvc/c").events
    assert (event.type, event.reason) == ("Warning", "ProvisioningFailed")
    assert control_plane.explain("pvc/c").waits == (
        "it is not bound: the StorageClass nope does not exist",
    )


WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: down}
webhooks:
- name: down.example.com
  clientConfig: {url: "https://127.0.0.1:1/"}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  sideEffects: None
  admissionReviewVersions: [v1]
  namespaceSelector: {matchLabels: {guarded: "yes"}}
"""


def test_a_webhook_that_fails(control_plane: ControlPlane) -> None:
    labels = {"name": "guarded", "labels": {"guarded": "yes"}}
    control_plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": labels})
    control_plane.apply(WEBHOOK)
    control_plane.apply(WEB, "guarded")

    def waits() -> tuple[str, ...]:
        return control_plane.explain("deployment/web", "guarded").waits

    fails = "replicaset-controller fails, and is tried again at"
    control_plane.eventually(lambda: any(fails in wait for wait in waits()))
    (wait,) = (wait for wait in waits() if fails in wait)
    assert wait.startswith("ReplicaSet web-")
    assert "down.example.com" in wait
    control_plane.delete("validatingwebhookconfiguration/down")
    control_plane.delete("deployment/web", "guarded")


def test_what_never_was_is_found_elsewhere_or_not_at_all(control_plane: ControlPlane) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}}
    control_plane.apply(config, "kube-system")
    assert "but in kube-system" in control_plane.explain("cm/there").state
    assert "has not existed" in control_plane.explain("cm/nowhere").state
    assert control_plane.explain("node/node-1").state == "Ready"


@pytest.mark.parametrize(
    ("name", "error"), [("web", ValueError), ("pod/", ValueError), ("x/y", errors.UnknownKind)]
)
def test_a_name_that_is_none_is_refused(
    control_plane: ControlPlane, name: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        control_plane.explain(name)


GUARDED = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
"""


def test_a_budget_that_allows_no_eviction(control_plane: ControlPlane) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}}
    control_plane.apply(namespace)
    control_plane.apply(GUARDED, "kept")
    control_plane.apply(WEB, "kept")
    control_plane.wait_for("deployment/web", condition="Available", namespace="kept")
    control_plane.eventually(
        lambda: control_plane.get("pdb/keep", "kept")["status"].get("currentHealthy") == 2
    )
    pod = control_plane.list("pods", "kept")[0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    path = f"/api/v1/namespaces/kept/pods/{pod}/eviction"
    assert control_plane.objects.client.post(path, json=eviction).status_code == 429
    said = control_plane.explain(f"pod/{pod}", "kept")
    assert said.waits == ("the PodDisruptionBudget keep allows no eviction of it",)
    (refused,) = said.refused
    assert refused.refusal.author.subresource == "eviction"
    assert "disruption budget" in refused.refusal.error
    (wait,) = control_plane.explain("pdb/keep", "kept").waits
    assert wait == "it allows no eviction: 2 pods of 2 are healthy, 2 must be"


def test_a_create_that_was_refused(control_plane: ControlPlane) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "none"}, "spec": {}}
    assert control_plane.objects.client.post("/api/v1/namespaces/default/pods", json=pod).is_error
    said = control_plane.explain("pod/none")
    assert not said.exists
    assert "spec.containers" in str(said.refused[0])
    assert "refused:" in str(said)


@pytest.mark.parametrize("verb", ["post", "get", "delete"])
def test_what_a_missing_right_refused(control_plane: ControlPlane, verb: str) -> None:
    path = "/api/v1/namespaces/default/configmaps" + ("" if verb == "post" else f"/for-{verb}")
    as_robot = {"impersonate-user": "system:serviceaccount:default:robot", "user-agent": "op/1"}
    body = {"metadata": {"name": "for-post"}} if verb == "post" else None
    request = control_plane.objects.client.request
    assert request(verb, path, headers=as_robot, json=body).is_error
    last = control_plane.explain(f"configmap/for-{verb}").refused[-1]
    assert last.refusal.author.name == "system:serviceaccount:default:robot"
    assert 'robot" cannot' in last.refusal.error


def test_what_a_fault_refused(control_plane: ControlPlane) -> None:
    with control_plane.faults.api(resource="secrets", error=500, for_="kcm-testing"):
        path = "/api/v1/namespaces/default/secrets/missed"
        assert control_plane.objects.client.get(path).status_code == 500
    (refused,) = control_plane.explain("secret/missed").refused
    assert refused.refusal.error.endswith("(by the fault: any verb secrets for kcm-testing: 500)")
    assert control_plane.explain("secret/other").refused == ()
