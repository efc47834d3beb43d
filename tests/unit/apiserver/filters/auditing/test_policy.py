"""Which requests an audit policy is about.

Source: staging/src/k8s.io/apiserver/pkg/audit/policy/checker_test.go, Kubernetes 1.36.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kcm import errors
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.filters.auditing.policy import Policy, load

TIM = User("tim", groups=("humans",))
POD = Attributes("create", version="v1", resource="pods", namespace="default", name="busybox")
LOG = Attributes("get", version="v1", resource="pods", subresource="log", namespace="default")
ROLE = Attributes("list", "rbac.authorization.k8s.io", "v1", "clusterroles")
PATH = Attributes("get", path="/logs/kubelet.log")


def policy(**rule: object) -> Policy:
    rules = [{"level": "Metadata", **rule}]
    return Policy.model_validate(
        {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}
    )


@pytest.mark.parametrize(
    ("rule", "matched"),
    [
        ({}, {"pod", "log", "role", "path"}),
        ({"users": ["tim"]}, {"pod", "log", "role", "path"}),
        ({"users": ["anna"]}, set()),
        ({"userGroups": ["humans"]}, {"pod", "log", "role", "path"}),
        ({"userGroups": ["robots"]}, set()),
        ({"verbs": ["create"]}, {"pod"}),
        ({"namespaces": ["default"]}, {"pod", "log"}),
        ({"namespaces": [""]}, {"role"}),
        ({"resources": [{"group": "", "resources": ["pods"]}]}, {"pod"}),
        ({"resources": [{"group": "", "resources": ["pods/log"]}]}, {"log"}),
        ({"resources": [{"group": "", "resources": ["pods/*"]}]}, {"pod", "log"}),
        ({"resources": [{"group": "", "resources": ["*/log"]}]}, {"log"}),
        ({"resources": [{"group": ""}]}, {"pod", "log"}),
        ({"resources": [{"group": "*", "resources": ["*"]}]}, {"pod", "log", "role"}),
        (
            {"resources": [{"group": "", "resources": ["pods"], "resourceNames": ["busybox"]}]},
            {"pod"},
        ),
        ({"resources": [{"group": "", "resources": ["pods"], "resourceNames": ["edge"]}]}, set()),
        ({"nonResourceURLs": ["/logs*"]}, {"path"}),
        ({"nonResourceURLs": ["/metrics"]}, set()),
        ({"nonResourceURLs": ["*"]}, {"path"}),
        ({"level": "None"}, set()),
    ],
)
def test_rules_match_as_upstreams(rule: dict[str, object], matched: set[str]) -> None:
    requests = {"pod": POD, "log": LOG, "role": ROLE, "path": PATH}
    checked = policy(**rule)
    assert {name for name, asked in requests.items() if checked.find(asked, TIM)} == matched


RULES = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Policy", "apiVersion"),
        (RULES + "[]", "at least 1 item"),
        (RULES + "[{level: Everything}]", "'None', 'Metadata', 'Request' or 'RequestResponse'"),
        (RULES + "[{level: None, user: [a]}]", "rules.0.user"),
        (RULES + "[{level: None, omitStages: [Never]}]", "'ResponseComplete' or 'Panic'"),
        (RULES + "[{level: None, resources: [{group: rbac.authorization.k8s.io/v1}]}]", "RFC 1123"),
        (RULES + "[{level: None, resources: [{resourceNames: [a]}]}]", "at least one resource"),
        (RULES + '[{level: None, nonResourceURLs: [/a], namespaces: [""]}]', "not about both"),
        (RULES + "[{level: None, nonResourceURLs: [logs]}]", "'logs' must begin with /"),
        (RULES + "[{level: None, nonResourceURLs: [/a*b]}]", "'/a*b' must begin with /"),
        ("[", "expected the node content"),
    ],
)
def test_what_is_no_policy_is_refused_with_its_file(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(errors.ConfigurationError, match="--audit-policy-file") as raised:
        load(file)
    assert words in str(raised.value)
