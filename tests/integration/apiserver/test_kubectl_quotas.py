"""kubectl, oldest and newest: quotas and limit ranges."""

from __future__ import annotations

import json

from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.manifests import pod


def test_a_quota_as_kubectl_makes_and_shows_it(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "few", "--hard=pods=1,limits.cpu=2", "--scopes=NotBestEffort")
    status = {"hard": {"pods": "1", "limits.cpu": "2"}, "used": {"pods": "0", "limits.cpu": "0"}}
    kubectl("patch", "quota", "few", "--subresource=status", "--type=merge", "-p",
            json.dumps({"status": status}))  # fmt: skip
    body = pod("a")
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    kubectl("create", "-f", "-", stdin=body)
    header, row = kubectl("get", "quota").splitlines()
    assert header.split() == ["NAME", "REQUEST", "LIMIT", "AGE"]
    assert "pods: 1/1" in row
    assert "limits.cpu: 1/2" in row
    described = kubectl("describe", "quota", "few")
    assert "NotBestEffort" in described
    assert "limits.cpu  1     2" in described
    body["metadata"]["name"] = "b"
    refused = "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
    assert refused in kubectl.run_failing("create", "--dry-run=server", "-f", "-", stdin=body)
    assert refused in kubectl.run_failing("create", "-f", "-", stdin=body)
    kubectl("create", "-f", "-", stdin=pod("best-effort"))
    assert "Scopes that an object" in kubectl("explain", "quota.spec.scopes")


def test_a_limit_range_gives_defaults_and_refuses_too_much(kubectl: Kubectl) -> None:
    items = [
        {"type": "Container", "default": {"cpu": "500m"}, "max": {"cpu": "1"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
    ]
    kind = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "sizes"}}
    kubectl("create", "-f", "-", stdin=kind | {"spec": {"limits": items}})
    kubectl("create", "-f", "-", stdin=pod("a"))
    stored = json.loads(kubectl("get", "pod", "a", "-o", "json"))
    cpu = {"cpu": "500m"}
    assert stored["spec"]["containers"][0]["resources"] == {"limits": cpu, "requests": cpu}
    large = pod("b")
    large["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}}
    words = kubectl.run_failing("create", "-f", "-", stdin=large)
    assert "maximum cpu usage per Container is 1, but limit is 2" in words
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}}
    words = kubectl.run_failing("create", "-f", "-", stdin=body | {"spec": claim})
    assert "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi" in words
    assert "PersistentVolumeClaim  storage" in kubectl("describe", "limits", "sizes")
