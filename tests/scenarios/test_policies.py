"""kubectl against a whole kcm: a policy with parameters refuses, and a migration succeeds."""

from __future__ import annotations

import pytest

from kcm.testing.waiting import until
from tests.scenarios.plane import StartPlane, start_plane
from tests.scenarios.system import needs_kubectl

__all__ = ["start_plane"]

pytestmark = [pytest.mark.scenario, needs_kubectl]

MANIFESTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: limits, namespace: default}
data: {most: "2"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few-replicas}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
      - apiGroups: [apps]
        apiVersions: [v1]
        operations: [CREATE, UPDATE]
        resources: [deployments, deployments/scale]
  validations:
    - expression: object.spec.replicas <= int(params.data.most)
      messageExpression: "'at most ' + params.data.most"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few-replicas}
spec:
  policyName: few-replicas
  paramRef: {name: limits, namespace: default, parameterNotFoundAction: Deny}
  validationActions: [Deny]
---
apiVersion: storagemigration.k8s.io/v1beta1
kind: StorageVersionMigration
metadata: {name: configmaps}
spec:
  resource: {group: "", resource: configmaps}
"""


def test_a_policy_with_parameters_and_a_migration(start_plane: StartPlane) -> None:
    plane = start_plane(nodes=0)
    plane.clock.run()  # kubectl waits in the time of the machine
    kubectl = plane.kubectl
    applied = kubectl("apply", "-f", "-", stdin=MANIFESTS)
    assert applied.returncode == 0, applied.stderr
    dry = ("create", "deployment", "probe", "--image=nginx", "--replicas=3", "--dry-run=server")
    until(lambda: kubectl(*dry).returncode != 0, "a policy that holds")

    refused = kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
    assert "'few-replicas' denied request: at most 2" in refused.stderr
    assert kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2").returncode == 0
    assert "at most 2" in kubectl("scale", "deployment", "web", "--replicas=3").stderr

    more = kubectl("patch", "configmap", "limits", "--patch", '{"data": {"most": "3"}}')
    assert more.returncode == 0, more.stderr
    scale = ("scale", "deployment", "web", "--replicas=3")
    until(lambda: kubectl(*scale).returncode == 0, "the new limit")
    until(lambda: len(plane.pods()) == 3, "the third pod, which no policy is about")

    waited = kubectl(
        "wait", "storageversionmigration/configmaps", "--for=condition=Succeeded", "--timeout=30s"
    )
    assert waited.returncode == 0, waited.stderr
    checked = "{.status.typeChecking}{.status.observedGeneration}"
    policy = ("get", "validatingadmissionpolicy", "few-replicas", "-o", f"jsonpath={checked}")
    until(lambda: kubectl(*policy).stdout.endswith("1"), "the types of the policy")
