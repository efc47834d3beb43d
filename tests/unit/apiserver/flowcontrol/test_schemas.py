"""Tests which FlowSchema a request gets, with those of a new cluster and with others."""

from __future__ import annotations

import pytest

from kcm.api.flowcontrol_v1 import FlowSchema
from kcm.api.priority_levels import SUGGESTED_LEVELS, SUGGESTED_SCHEMAS
from kcm.apiserver.auth.attributes import ADMIN, ANYBODY, Attributes, User
from kcm.apiserver.flowcontrol.schemas import FlowSchemas

LEVELS = {"exempt", "catch-all", *(level.name for level in SUGGESTED_LEVELS)}
NODE = User("system:node:n1", groups=("system:nodes", "system:authenticated"))
MANAGER = User("system:kube-controller-manager", groups=("system:authenticated",))
JANE = User("jane", groups=("system:authenticated",))
ROBOT = User(
    "system:serviceaccount:shop:robot", groups=("system:serviceaccounts", "system:authenticated")
)
CONTROLLER = User("system:serviceaccount:kube-system:job", groups=("system:serviceaccounts",))
LEASE = Attributes("update", "coordination.k8s.io", "v1", "leases", namespace="kube-node-lease")
POD = Attributes("create", "", "v1", "pods", namespace="shop")
NODE_STATUS = Attributes("patch", "", "v1", "nodes", "status", name="n1")


@pytest.mark.parametrize(
    ("user", "asked", "schema", "level", "distinguisher"),
    [
        (ADMIN, POD, "exempt", "exempt", ""),
        (ANYBODY, Attributes("get", path="/readyz"), "probes", "exempt", ""),
        (ANYBODY, Attributes("get", path="/readyz/etcd"), "probes", "exempt", ""),
        (JANE, Attributes("get", path="/readyzz"), "global-default", "global-default", "jane"),
        (NODE, LEASE, "system-node-high", "node-high", NODE.name),
        (NODE, NODE_STATUS, "system-node-high", "node-high", NODE.name),
        (NODE, POD, "system-nodes", "system", NODE.name),
        (MANAGER, LEASE, "system-leader-election", "leader-election", MANAGER.name),
        (MANAGER, POD, "kube-controller-manager", "workload-high", "shop"),
        (CONTROLLER, POD, "kube-system-service-accounts", "workload-high", "shop"),
        (ROBOT, POD, "service-accounts", "workload-low", ROBOT.name),
        (ROBOT, LEASE, "service-accounts", "workload-low", ROBOT.name),
        (JANE, POD, "global-default", "global-default", "jane"),
        (User("nobody"), POD, "catch-all", "catch-all", "nobody"),
    ],
)  # fmt: skip
def test_the_first_schema_that_matches_gives_the_level_and_the_flow(
    user: User, asked: Attributes, schema: str, level: str, distinguisher: str
) -> None:
    flow = FlowSchemas(SUGGESTED_SCHEMAS, LEVELS).find(user, asked)
    assert (flow.schema, flow.level, flow.distinguisher) == (schema, level, distinguisher)


def _schema(rule: dict[str, object], **spec: object) -> FlowSchema:
    subjects = [{"kind": "User", "user": {"name": "jane"}}]
    return FlowSchema.model_validate(
        {
            "metadata": {"name": "mine", "uid": "u1"},
            "spec": {
                "priorityLevelConfiguration": {"name": "system"},
                "matchingPrecedence": 50,
                "rules": [{"subjects": subjects, **rule}],
                **spec,
            },
        }
    )


def _resource_rule(**fields: object) -> dict[str, object]:
    rule = {"verbs": ["create"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["shop"]}
    return {"resourceRules": [rule | fields]}


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({}, True),
        ({"verbs": ["get"]}, False),
        ({"verbs": ["*"]}, True),
        ({"apiGroups": ["apps"]}, False),
        ({"resources": ["pods/status"]}, False),
        ({"namespaces": ["other"]}, False),
        ({"namespaces": ["*"]}, True),
        ({"namespaces": [], "clusterScope": True}, False),
    ],
)
def test_every_part_of_a_rule_has_to_match(fields: dict[str, object], matches: bool) -> None:
    schema = _schema(_resource_rule(**fields))
    flow = FlowSchemas([*SUGGESTED_SCHEMAS, schema], LEVELS).find(JANE, POD)
    assert (flow.schema == "mine") is matches
    assert (flow.schema_uid == b"u1") is matches


def test_a_request_without_a_namespace_needs_the_cluster_scope() -> None:
    namespaces = Attributes("create", "", "v1", "namespaces")
    for scope, matches in ((True, True), (False, False)):
        rule = _resource_rule(resources=["namespaces"], namespaces=["*"], clusterScope=scope)
        flow = FlowSchemas([*SUGGESTED_SCHEMAS, _schema(rule)], LEVELS).find(JANE, namespaces)
        assert (flow.schema == "mine") is matches


def test_a_schema_of_a_level_that_is_missing_matches_nothing() -> None:
    schemas = [*SUGGESTED_SCHEMAS, _schema(_resource_rule())]
    assert FlowSchemas(schemas, LEVELS - {"system"}).find(JANE, POD).schema == "global-default"


def test_without_any_schema_the_mandatory_ones_hold() -> None:
    schemas = FlowSchemas([], {"exempt", "catch-all"})
    assert schemas.find(ADMIN, POD).level == "exempt"
    assert schemas.find(JANE, POD).level == "catch-all"


def test_sorts_of_requests_that_clients_make_up_are_forgotten_again() -> None:
    schemas = FlowSchemas(SUGGESTED_SCHEMAS, LEVELS)
    for n in range(5000):
        schemas.find(JANE, Attributes("get", path=f"/made-up/{n}"))
    assert len(schemas._flows) <= 4096
