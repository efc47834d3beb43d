"""Invalid pods are rejected, whichever part of them is invalid."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.apiserver.manifests import pod
from tests.integration.apiserver.serving import Live

PODS = "/api/v1/namespaces/default/pods"


def of_container(**fields: Any) -> dict[str, Any]:
    """Returns the spec of a pod with one container."""
    return {"containers": [{"name": "c", "image": "i"} | fields]}


def of_volume(**source: Any) -> dict[str, Any]:
    """Returns the spec of a pod with one volume."""
    return of_container() | {"volumes": [{"name": "v"} | source]}


def build_with_affinity(**affinity: Any) -> dict[str, Any]:
    return of_container() | {"affinity": affinity}


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
NODE_TERM = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        (of_container(securityContext={"runAsUser": "abc"}), 400,
         "json: cannot unmarshal string into Go struct field SecurityContext."),
        (of_container(securityContext={"runAsUsr": 1}), 400,
         'unknown field "spec.containers[0].securityContext.runAsUsr"'),
        (of_container(securityContext={"privileged": "yes"}), 400,
         "json: cannot unmarshal string into Go struct field SecurityContext."),
        (build_with_affinity(nodeAffinty={}), 400, 'unknown field "spec.affinity.nodeAffinty"'),
        (build_with_affinity(nodeAffinity={NODE_TERM: {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "k", "operator": "Inn", "values": ["v"]}]}]}}), 422,
         "not a valid selector operator"),
        (build_with_affinity(podAffinity={"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1000, "podAffinityTerm": {"topologyKey": "zone"}}]}), 422,
         "must be in the range 1-100"),
        (of_container() | {"topologySpreadConstraints": [SPREAD | {"maxSkew": 0}]}, 422,
         "maxSkew: Invalid value: 0: must be greater than zero"),
        (of_container() | {"topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "Wrong"}]},
         422, 'whenUnsatisfiable: Unsupported value: "Wrong"'),
        (of_volume(hostPath={"pth": "/"}), 400, 'unknown field "spec.volumes[0].hostPath.pth"'),
        (of_volume(secret={"name": "a"}), 400, 'unknown field "spec.volumes[0].secret.name"'),
        (of_volume(persistentVolumeClaim={"name": "a"}), 400,
         'unknown field "spec.volumes[0].persistentVolumeClaim.name"'),
        (of_volume(configMap={"name": "a", "defaultMode": "0644"}), 400,
         "json: cannot unmarshal string into Go struct field ConfigMapVolumeSource."),
        (of_volume(rbd={"monitors": "a", "image": "i"}), 400,
         "json: cannot unmarshal string into Go struct field RBDVolumeSource."),
        (of_container(envFrom=[{"configmapRef": {"name": "a"}}]), 400,
         'unknown field "spec.containers[0].envFrom[0].configmapRef"'),
        (of_container(env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.nope"}}}]),
         422, "field label not supported: spec.nope"),
        (of_container(lifecycle={"preStp": {}}), 400,
         'unknown field "spec.containers[0].lifecycle.preStp"'),
        (of_container() | {"dnsPolicy": "None"}, 422, "must provide `dnsConfig`"),
        (of_container() | {"hostAliases": [{"ip": "x"}]}, 422, "must be a valid IP address"),
        (of_container(livenessProbe={"httpGet": {"port": 1, "httpHeaders": [
            {"name": "a b", "value": ""}]}}), 422, "a valid HTTP header must consist of"),
        (of_volume(emptyDir={}) | of_container(volumeMounts=[
            {"name": "v", "mountPath": "/x", "subPath": "../x"}]), 422, "must not contain '..'"),
        (of_container() | {"securityContext": {"sysctls": [{"name": "a..b", "value": "1"}]}},
         422, "must have at most 253 characters"),
        (of_container(resources={"limits": {"hugepages-2Mi": "2Mi"}}), 422,
         "HugePages require cpu or memory"),
        (of_container() | {"shareProcessNamespace": True, "hostPID": True}, 422,
         "ShareProcessNamespace and HostPID cannot both be enabled"),
        (of_container() | {"serviceAccountName": "nobody"}, 403,
         'error looking up service account default/nobody: serviceaccount "nobody" not found'),
    ],
)  # fmt: skip
def test_a_wrong_pod_is_refused(api: Live, spec: dict[str, Any], code: int, words: str) -> None:
    body = pod("wrong") | {"spec": spec}
    response = api.request("POST", f"{PODS}?fieldValidation=Strict", body)
    assert (response.status_code, words in response.json()["message"]) == (code, True), (
        response.json()["message"]
    )


def test_a_pod_gets_the_default_service_account_under_both_names(api: Live) -> None:
    spec = api.request("POST", PODS, pod("plain")).json()["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")


def test_an_account_that_exists_is_taken(api: Live) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    api.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    body = pod("owned")
    body["spec"]["serviceAccount"] = "robot"
    spec = api.request("POST", PODS, body).json()["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("robot", "robot")
