"""Every `kubectl create KIND` for a kind that kcm has. From 1.32 on the body is protobuf."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.integration.apiserver.kubectl import Kubectl

# What is typed, what is then stored (a part of it).
COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "configmap": ("configmap x --from-literal=a=b", {"data": {"a": "b"}}),
    "secret": (
        "secret generic x --from-literal=a=b --type=example.com/t",
        {"data": {"a": "Yg=="}, "type": "example.com/t"},
    ),
    "serviceaccount": ("serviceaccount x", {}),
    "service": (
        "service clusterip x --tcp=80:http --clusterip=None",
        {"spec": {"clusterIP": "None", "ports": [{"port": 80, "targetPort": "http"}]}},
    ),
    "deployment": (
        "deployment x --image=nginx --replicas=0 --port=80",
        {
            "spec": {
                "replicas": 0,
                "strategy": {"type": "RollingUpdate"},
                "template": {"spec": {"containers": [{"image": "nginx", "name": "nginx"}]}},
            }
        },
    ),
    "job": (
        "job x --image=busybox -- date",
        {
            "spec": {
                "completions": 1,
                "backoffLimit": 6,
                "template": {
                    "metadata": {"labels": {"job-name": "x", "batch.kubernetes.io/job-name": "x"}},
                    "spec": {
                        "containers": [{"image": "busybox", "name": "x", "command": ["date"]}],
                        "restartPolicy": "Never",
                    },
                },
            }
        },
    ),
    "cronjob": (
        "cronjob x --image=busybox --schedule='*/5 * * * *' -- date",
        {
            "spec": {
                "schedule": "*/5 * * * *",
                "concurrencyPolicy": "Allow",
                "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}},
            }
        },
    ),
    "role": (
        "role x --verb=get --resource=pods --resource-name=a",
        {"rules": [{"verbs": ["get"], "resources": ["pods"], "resourceNames": ["a"]}]},
    ),
    "rolebinding": (
        "rolebinding x --role=y --serviceaccount=default:z",
        {"subjects": [{"kind": "ServiceAccount", "name": "z", "namespace": "default"}]},
    ),
    "poddisruptionbudget": (
        "poddisruptionbudget x --selector=a=b --min-available=50%",
        {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}},
    ),
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_create(kubectl: Kubectl, kind: str) -> None:
    command, expected = COMMANDS[kind]
    assert kubectl("create", *shlex.split(command)).endswith("created\n")
    stored = json.loads(kubectl("get", kind, "x", "-o", "json"))
    assert_within(expected, stored)


def test_create_of_kinds_of_the_cluster(kubectl: Kubectl) -> None:
    name = f"x-{kubectl.namespace}"
    kubectl("create", "clusterrole", name, "--verb=get", "--non-resource-url=/logs/*")
    kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", "--user=ada")
    kubectl("create", "priorityclass", name, "--value=-7", "--description=low")
    kubectl("create", "namespace", name)
    role = json.loads(kubectl("get", "clusterrole", name, "-o", "json"))
    assert role["rules"] == [{"nonResourceURLs": ["/logs/*"], "verbs": ["get"]}]
    stored = json.loads(kubectl("get", "priorityclass", name, "-o", "json"))
    assert (stored["value"], stored["description"]) == (-7, "low")


def assert_within(expected: Any, actual: Any) -> None:
    """Asserts that everything expected is there. There may be more."""
    if isinstance(expected, dict):
        for name, value in expected.items():
            assert name in actual
            assert_within(value, actual[name])
    elif isinstance(expected, list):
        assert len(expected) == len(actual)
        for one, other in zip(expected, actual, strict=True):
            assert_within(one, other)
    else:
        assert actual == expected
