"""The FlowSchemas and PriorityLevelConfigurations that every cluster has.

The mandatory ones may not be changed. The suggested ones are an administrator's to change.

Source: staging/src/k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap/default.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kcm.api.flowcontrol_v1 import (
    ExemptPriorityLevelConfiguration,
    FlowDistinguisherMethod,
    FlowSchema,
    FlowSchemaSpec,
    GroupSubject,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationReference,
    PriorityLevelConfigurationSpec,
    QueuingConfiguration,
    ResourcePolicyRule,
    ServiceAccountSubject,
    Subject,
    UserSubject,
)
from kcm.apimachinery.meta_v1 import ObjectMeta

AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"
EXEMPT, CATCH_ALL = "exempt", "catch-all"
_ANY = ["*"]
_EVERYBODY = ("system:unauthenticated", "system:authenticated")
_LEASES = ("get create update", "coordination.k8s.io", "leases")
_ENDPOINTS = ("get create update", "", "endpoints")


def _metadata(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, annotations={AUTOUPDATE: "true"})


# --- priority levels


def _level(
    name: str, shares: int, lendable: int, queues: tuple[int, int] | None
) -> PriorityLevelConfiguration:
    """Returns a limited level. `queues` are their number and the size of a hand, or None."""
    response = LimitResponse(type="Reject")
    if queues is not None:
        queuing = QueuingConfiguration(queues=queues[0], hand_size=queues[1], queue_length_limit=50)
        response = LimitResponse(type="Queue", queuing=queuing)
    limited = LimitedPriorityLevelConfiguration(
        nominal_concurrency_shares=shares, lendable_percent=lendable, limit_response=response
    )
    spec = PriorityLevelConfigurationSpec(type="Limited", limited=limited)
    return PriorityLevelConfiguration(metadata=_metadata(name), spec=spec)


def _exempt_level() -> PriorityLevelConfiguration:
    exempt = ExemptPriorityLevelConfiguration(nominal_concurrency_shares=0, lendable_percent=0)
    spec = PriorityLevelConfigurationSpec(type="Exempt", exempt=exempt)
    return PriorityLevelConfiguration(metadata=_metadata(EXEMPT), spec=spec)


MANDATORY_LEVELS: Mapping[str, PriorityLevelConfiguration] = {
    EXEMPT: _exempt_level(),
    CATCH_ALL: _level(CATCH_ALL, 5, 0, None),
}
SUGGESTED_LEVELS: Sequence[PriorityLevelConfiguration] = (
    _level("system", 30, 33, (64, 6)),
    _level("node-high", 40, 25, (64, 6)),
    _level("leader-election", 10, 0, (16, 4)),
    _level("workload-high", 40, 50, (128, 6)),
    _level("workload-low", 100, 90, (128, 6)),
    _level("global-default", 20, 50, (128, 6)),
)


# --- FlowSchemas


def _users(*names: str) -> list[Subject]:
    return [Subject(kind="User", user=UserSubject(name=name)) for name in names]


def _groups(*names: str) -> list[Subject]:
    return [Subject(kind="Group", group=GroupSubject(name=name)) for name in names]


def _system_accounts(*names: str) -> list[Subject]:
    accounts = [ServiceAccountSubject(namespace="kube-system", name=name) for name in names]
    return [Subject(kind="ServiceAccount", service_account=account) for account in accounts]


def _schema(
    name: str, level: str, precedence: int, method: str, rule: PolicyRulesWithSubjects
) -> FlowSchema:
    spec = FlowSchemaSpec(
        priority_level_configuration=PriorityLevelConfigurationReference(name=level),
        matching_precedence=precedence,
        distinguisher_method=FlowDistinguisherMethod(type=method) if method else None,
        rules=[rule],
    )
    return FlowSchema(metadata=_metadata(name), spec=spec)


def _everything(subjects: list[Subject]) -> PolicyRulesWithSubjects:
    """Returns a rule for all requests of the subjects."""
    resources = ResourcePolicyRule(
        verbs=_ANY, api_groups=_ANY, resources=_ANY, namespaces=_ANY, cluster_scope=True
    )
    paths = NonResourcePolicyRule(verbs=_ANY, non_resource_urls=_ANY)
    return PolicyRulesWithSubjects(
        subjects=subjects, resource_rules=[resources], non_resource_rules=[paths]
    )


def _resources(
    subjects: list[Subject], *wanted: tuple[str, str, str], cluster: int = 0
) -> PolicyRulesWithSubjects:
    """Returns a rule for verbs, a group and resources, of which the first `cluster` include
    requests without a namespace.
    """
    rules = [
        ResourcePolicyRule(
            verbs=verbs.split(),
            api_groups=[group],
            resources=names.split(),
            namespaces=_ANY,
            cluster_scope=True if index < cluster else None,
        )
        for index, (verbs, group, names) in enumerate(wanted)
    ]
    return PolicyRulesWithSubjects(subjects=subjects, resource_rules=rules)


def _probes() -> PolicyRulesWithSubjects:
    paths = NonResourcePolicyRule(
        verbs=["get"], non_resource_urls=["/healthz", "/readyz", "/livez"]
    )
    return PolicyRulesWithSubjects(subjects=_groups(*_EVERYBODY), non_resource_rules=[paths])


_MANAGER, _SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
_NODES = "system:nodes"

MANDATORY_SCHEMAS: Mapping[str, FlowSchema] = {
    EXEMPT: _schema(EXEMPT, EXEMPT, 1, "", _everything(_groups("system:masters"))),
    CATCH_ALL: _schema(CATCH_ALL, CATCH_ALL, 10_000, "ByUser", _everything(_groups(*_EVERYBODY))),
}
SUGGESTED_SCHEMAS: Sequence[FlowSchema] = (
    _schema("probes", EXEMPT, 2, "", _probes()),
    _schema(
        "system-leader-election", "leader-election", 100, "ByUser",
        _resources([*_users(_MANAGER, _SCHEDULER), *_system_accounts("*")], _LEASES),
    ),
    _schema(
        "endpoint-controller", "workload-high", 150, "ByUser",
        _resources(
            [
                *_users(_MANAGER),
                *_system_accounts("endpoint-controller", "endpointslicemirroring-controller"),
            ],
            _ENDPOINTS,
        ),
    ),
    _schema(
        "workload-leader-election", "leader-election", 200, "ByUser",
        _resources(
            _system_accounts("*"), ("get create update", "", "endpoints configmaps"), _LEASES
        ),
    ),
    _schema(
        "system-node-high", "node-high", 400, "ByUser",
        _resources(
            _groups(_NODES), ("*", "", "nodes nodes/status"),
            ("*", "coordination.k8s.io", "leases"), cluster=1,
        ),
    ),
    _schema("system-nodes", "system", 500, "ByUser", _everything(_groups(_NODES))),
    _schema(
        "kube-controller-manager", "workload-high", 800, "ByNamespace",
        _everything(_users(_MANAGER)),
    ),
    _schema(
        "kube-scheduler", "workload-high", 800, "ByNamespace", _everything(_users(_SCHEDULER))
    ),
    _schema(
        "kube-system-service-accounts", "workload-high", 900, "ByNamespace",
        _everything(_system_accounts("*")),
    ),
    _schema(
        "service-accounts", "workload-low", 9000, "ByUser",
        _everything(_groups("system:serviceaccounts")),
    ),
    _schema(
        "global-default", "global-default", 9900, "ByUser", _everything(_groups(*_EVERYBODY))
    ),
)  # fmt: skip
