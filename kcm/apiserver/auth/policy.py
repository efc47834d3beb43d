"""The default cluster roles and their bindings, apart from those of controllers.

Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kcm.api.rbac_v1 import (
    GROUP,
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    RoleRef,
    Subject,
)
from kcm.apimachinery.meta_v1 import LabelSelector, ObjectMeta
from kcm.apiserver.auth.attributes import (
    AUTHENTICATED,
    MASTERS,
    NODES,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
)
from kcm.helpers.bootstrap_tokens import NODE_TOKEN_GROUP

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_NO_LABELS: Mapping[str, str] = {}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"

READ = "get list watch"
_CHANGE = "create delete deletecollection patch update"
EVENTS = ("create patch update", "core events.k8s.io", "events")
_REVIEWS = (
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
)

# Verbs, groups (`core` for the core group), resources, and perhaps names of objects.
RuleText = tuple[str, str, str] | tuple[str, str, str, str]

_VIEW: Sequence[RuleText] = (
    (READ, "core", "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status "
     "pods replicationcontrollers replicationcontrollers/scale serviceaccounts services "
     "services/status"),
    (READ, "core", "bindings events limitranges namespaces/status pods/log pods/status "
     "replicationcontrollers/status resourcequotas resourcequotas/status"),
    (READ, "core", "namespaces"),
    (READ, "discovery.k8s.io", "endpointslices"),
    (READ, "apps", "controllerrevisions daemonsets daemonsets/status deployments "
     "deployments/scale deployments/status replicasets replicasets/scale replicasets/status "
     "statefulsets statefulsets/scale statefulsets/status"),
    (READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    (READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    (READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    (READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    (READ, "metrics.k8s.io", "nodes pods"),
    (READ, "events.k8s.io", "events"),
    (READ, "extensions", "daemonsets daemonsets/status deployments deployments/scale "
     "deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale "
     "replicasets/status replicationcontrollers/scale"),
    (READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
)  # fmt: skip
_EDIT: Sequence[RuleText] = (
    (READ, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    ("impersonate", "core", "serviceaccounts"),
    (_CHANGE, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    ("create", "core", "pods/eviction"),
    (_CHANGE, "core", "configmaps events persistentvolumeclaims replicationcontrollers "
     "replicationcontrollers/scale secrets serviceaccounts services services/proxy"),
    ("create", "core", "serviceaccounts/token"),
    (_CHANGE, "apps", "daemonsets deployments deployments/rollback deployments/scale "
     "replicasets replicasets/scale statefulsets statefulsets/scale"),
    (_CHANGE, "autoscaling", "horizontalpodautoscalers"),
    (_CHANGE, "batch", "cronjobs jobs"),
    (_CHANGE, "policy", "poddisruptionbudgets"),
    (_CHANGE, "networking.k8s.io", "ingresses networkpolicies"),
    (f"{_CHANGE} {READ}", "coordination.k8s.io", "leases"),
    (_CHANGE, "events.k8s.io", "events"),
    (_CHANGE, "extensions", "daemonsets deployments deployments/rollback deployments/scale "
     "ingresses networkpolicies replicasets replicasets/scale replicationcontrollers/scale"),
    (_CHANGE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
)  # fmt: skip
_ADMIN: Sequence[RuleText] = (
    ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    (f"{_CHANGE} {READ}", GROUP, "rolebindings roles"),
)
_OF_NODES: Sequence[RuleText] = (
    *_REVIEWS,
    ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    (READ, "core", "services"),
    ("create get list watch", "core", "nodes"),
    ("patch update", "core", "nodes/status"),
    ("patch update", "core", "nodes"),
    EVENTS,
    (READ, "core", "pods"),
    ("create delete", "core", "pods"),
    ("patch update", "core", "pods/status"),
    ("create", "core", "pods/eviction"),
    (READ, "core", "configmaps secrets"),
    ("get", "core", "persistentvolumeclaims persistentvolumes"),
    ("get", "core", "endpoints"),
    ("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
    ("create delete get patch update", "coordination.k8s.io", "leases"),
    ("get", "storage.k8s.io", "volumeattachments"),
    ("create", "core", "serviceaccounts/token"),
    ("get patch update", "core", "persistentvolumeclaims/status"),
    (READ, "storage.k8s.io", "csidrivers"),
    ("create delete get patch update", "storage.k8s.io", "csinodes"),
    (READ, "node.k8s.io", "runtimeclasses"),
)
# The role has these, too. The Node authorizer does not allow them for every object.
_NODE: Sequence[RuleText] = (
    *_OF_NODES,
    ("get", "core", "serviceaccounts"),
    ("get", "resource.k8s.io", "resourceclaims"),
    ("deletecollection", "resource.k8s.io", "resourceslices"),
)
_CONTROLLER_MANAGER: Sequence[RuleText] = (
    EVENTS,
    ("create", "coordination.k8s.io", "leases"),
    ("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
    ("create", "core", "secrets serviceaccounts"),
    ("delete", "core", "secrets"),
    ("get", "core", "configmaps namespaces secrets serviceaccounts"),
    ("update", "core", "secrets serviceaccounts"),
    *_REVIEWS,
    ("list watch", "*", "*"),
    ("create", "core", "serviceaccounts/token"),
)
_SCHEDULER: Sequence[RuleText] = (
    EVENTS,
    ("create", "coordination.k8s.io", "leases"),
    ("get update", "coordination.k8s.io", "leases", "kube-scheduler"),
    (READ, "core", "nodes"),
    (f"delete {READ}", "core", "pods"),
    ("create", "core", "bindings pods/binding"),
    ("patch update", "core", "pods/status"),
    (READ, "core", "replicationcontrollers services"),
    (READ, "apps", "replicasets"),
    (READ, "apps", "statefulsets"),
    (READ, "policy", "poddisruptionbudgets"),
    (READ, "core", "persistentvolumeclaims persistentvolumes"),
    *_REVIEWS,
    (READ, "storage.k8s.io", "csinodes csidrivers csistoragecapacities"),
    (READ, "core", "namespaces"),
    (f"{_CHANGE} {READ}", "coordination.k8s.io", "leasecandidates"),
    ("list watch", "coordination.k8s.io", "leases", "kube-scheduler"),
    ("update", "core", "pods/finalizers"),
    (READ, "extensions", "replicasets"),
    (READ, "storage.k8s.io", "volumeattachments"),
    (READ, "resource.k8s.io", "deviceclasses resourceslices"),
    (f"create delete patch update {READ}", "resource.k8s.io", "resourceclaims"),
    (f"patch update {READ}", "resource.k8s.io", "resourceclaims/status"),
    ("patch update", "resource.k8s.io", "resourceclaims/binding"),
)
_PROXIER: Sequence[RuleText] = (
    ("list watch", "core", "endpoints services"),
    (READ, "core", "nodes"),
    EVENTS,
    ("list watch", "discovery.k8s.io", "endpointslices"),
    ("list watch", "networking.k8s.io", "servicecidrs"),
)
_PROBLEM_DETECTOR: Sequence[RuleText] = (
    ("get", "core", "nodes"),
    ("patch", "core", "nodes/status"),
    EVENTS,
)
_PROVISIONER: Sequence[RuleText] = (
    (f"create delete {READ}", "core", "persistentvolumes"),
    (f"update {READ}", "core", "persistentvolumeclaims"),
    (READ, "storage.k8s.io", "storageclasses"),
    ("watch", "core", "events"),
    EVENTS,
)
_VOLUME_SCHEDULER: Sequence[RuleText] = (
    (f"patch update {READ}", "core", "persistentvolumeclaims persistentvolumes"),
    (READ, "storage.k8s.io", "storageclasses"),
)
_KUBELET_ADMIN: Sequence[RuleText] = (
    (f"proxy {READ}", "core", "nodes"),
    ("*", "core", "nodes/configz nodes/healthz nodes/log nodes/metrics nodes/pods nodes/proxy "
     "nodes/stats"),
)  # fmt: skip
_APPROVED = ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving",
             "legacy-unknown")  # fmt: skip
_BASIC: Sequence[RuleText] = (
    ("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
    ("create", "authentication.k8s.io", "selfsubjectreviews"),
)
_SIGNING = "certificates.k8s.io"
_BOOTSTRAPPER: Sequence[RuleText] = ((f"create {READ}", _SIGNING, "certificatesigningrequests"),)
_CERTIFICATES = f"system:{_SIGNING}:"
_RULES: Mapping[str, Sequence[RuleText]] = {
    "cluster-admin": (("*", "*", "*"),),
    "system:aggregate-to-admin": _ADMIN,
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-view": _VIEW,
    "system:auth-delegator": _REVIEWS,
    "system:basic-user": _BASIC,
    "system:kube-aggregator": ((READ, "core", "endpoints services"),),
    "system:heapster": (
        (READ, "core", "events namespaces nodes pods"),
        (READ, "extensions", "deployments"),
    ),
    "system:kube-controller-manager": _CONTROLLER_MANAGER,
    "system:kube-dns": (("list watch", "core", "endpoints services"),),
    "system:kube-scheduler": _SCHEDULER,
    "system:node": _NODE,
    "system:node-bootstrapper": _BOOTSTRAPPER,
    "system:node-problem-detector": _PROBLEM_DETECTOR,
    "system:node-proxier": _PROXIER,
    "system:kubelet-api-admin": _KUBELET_ADMIN,
    "system:persistent-volume-provisioner": _PROVISIONER,
    "system:volume-scheduler": _VOLUME_SCHEDULER,
    "system:monitoring": (("get", "core", "nodes/metrics"),),
    **{
        f"{_CERTIFICATES}{signer}-approver": (
            ("approve", _SIGNING, "signers", f"kubernetes.io/{signer}"),
        )
        for signer in _APPROVED
    },
    f"{_CERTIFICATES}certificatesigningrequests:nodeclient": (
        ("create", _SIGNING, "certificatesigningrequests/nodeclient"),
    ),
    f"{_CERTIFICATES}certificatesigningrequests:selfnodeclient": (
        ("create", _SIGNING, "certificatesigningrequests/selfnodeclient"),
    ),
}
_PUBLIC = "/healthz /livez /readyz /version /version/"
_PATHS: Mapping[str, str] = {
    "system:discovery": f"/api /api/* /apis /apis/* /openapi /openapi/* {_PUBLIC}",
    "system:monitoring": "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis "
    "/readyz /readyz/* /statusz",
    "system:public-info-viewer": _PUBLIC,
    "system:service-account-issuer-discovery": "/.well-known/openid-configuration "
    "/.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
}
# Aggregated roles by name, each with the aggregated role that includes it, "" for none.
_AGGREGATED: Mapping[str, str] = {"admin": "", "edit": "admin", "view": "edit"}
_PARTS: Mapping[str, str] = {f"system:aggregate-to-{to}": to for to in _AGGREGATED}

_BOUND: Mapping[str, Sequence[str]] = {
    "cluster-admin": (f"Group {MASTERS}",),
    "system:basic-user": (f"Group {AUTHENTICATED}",),
    "system:discovery": (f"Group {AUTHENTICATED}",),
    "system:kube-controller-manager": ("User system:kube-controller-manager",),
    "system:kube-dns": ("ServiceAccount kube-system/kube-dns",),
    "system:kube-scheduler": ("User system:kube-scheduler",),
    "system:monitoring": ("Group system:monitoring",),
    "system:node": (),
    "system:node-proxier": ("User system:kube-proxy",),
    "system:public-info-viewer": (f"Group {AUTHENTICATED}", f"Group {UNAUTHENTICATED}"),
    "system:service-account-issuer-discovery": (f"Group {SERVICE_ACCOUNTS}",),
    "system:volume-scheduler": ("User system:kube-scheduler",),
}


def cluster_roles() -> list[ClusterRole]:
    """Returns the default ClusterRoles, sorted by name."""
    rules = {name: parse_rules(texts) for name, texts in _RULES.items()}
    rules["cluster-admin"].append(PolicyRule(verbs=["*"], non_resource_urls=["*"]))
    for name, paths in _PATHS.items():
        reading = PolicyRule(verbs=["get"], non_resource_urls=paths.split())
        rules[name] = [reading, *rules.get(name, ())]
    roles = [_role(name, one) for name, one in rules.items()]
    for name in _AGGREGATED:
        selector = LabelSelector(match_labels={f"{_AGGREGATE}{name}": "true"})
        role = _role(name, None)
        roles.append(
            role.replace(aggregation_rule=AggregationRule(cluster_role_selectors=[selector]))
        )
    return sorted(roles, key=lambda role: role.name)


def node_rules() -> list[PolicyRule]:
    """Returns the rules of the ClusterRole system:node that the Node authorizer applies, too."""
    return parse_rules(_OF_NODES)


def joining_bindings() -> list[ClusterRoleBinding]:
    """Returns the bindings by which bootstrap tokens add nodes, as kubeadm makes them.

    Source: cmd/kubeadm/app/phases/bootstraptoken/node/tlsbootstrap.go, Kubernetes 1.33.
    """
    requests = f"{_CERTIFICATES}certificatesigningrequests"
    bound = (
        ("kcm:kubelet-bootstrap", "system:node-bootstrapper", NODE_TOKEN_GROUP),
        ("kcm:node-autoapprove-bootstrap", f"{requests}:nodeclient", NODE_TOKEN_GROUP),
        ("kcm:node-autoapprove-certificate-rotation", f"{requests}:selfnodeclient", NODES),
    )
    return [
        ClusterRoleBinding(
            metadata=default_metadata(name),
            role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=role),
            subjects=[parse_subject(f"Group {group}")],
        )
        for name, role, group in bound
    ]


def cluster_role_bindings() -> list[ClusterRoleBinding]:
    """Returns the default ClusterRoleBindings."""
    return [new_binding(name, subjects) for name, subjects in _BOUND.items()]


def new_binding(name: str, subjects: Iterable[str]) -> ClusterRoleBinding:
    """Returns a default binding, which grants the ClusterRole of the same name."""
    return ClusterRoleBinding(
        metadata=default_metadata(name),
        role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=name),
        subjects=[parse_subject(text) for text in subjects] or None,
    )


def new_role(name: str, rules: Iterable[RuleText]) -> ClusterRole:
    """Returns a default role that is not aggregated."""
    return ClusterRole(metadata=default_metadata(name), rules=parse_rules(rules))


def _role(name: str, rules: list[PolicyRule] | None) -> ClusterRole:
    part_of = _PARTS.get(name) or _AGGREGATED.get(name)
    labels = {f"{_AGGREGATE}{part_of}": "true"} if part_of else {}
    return ClusterRole(metadata=default_metadata(name, labels), rules=rules)


def default_metadata(name: str, labels: Mapping[str, str] = _NO_LABELS) -> ObjectMeta:
    """Returns the metadata of a default role or binding."""
    return ObjectMeta(name=name, labels={**LABELS, **labels}, annotations={AUTOUPDATE: "true"})


def _rule(verbs: str, groups: str, resources: str, names: str = "") -> PolicyRule:
    return PolicyRule(
        verbs=verbs.split(),
        api_groups=["" if group == "core" else group for group in groups.split()],
        resources=resources.split(),
        resource_names=names.split() or None,
    )


def parse_rules(rules: Iterable[RuleText]) -> list[PolicyRule]:
    """Returns rules from their texts."""
    return [_rule(*rule) for rule in rules]


def parse_subject(text: str) -> Subject:
    """Returns a subject from its kind and name, and namespace: `ServiceAccount ns/name`."""
    kind, _, name = text.partition(" ")
    if kind == "ServiceAccount":
        namespace, _, name = name.partition("/")
        return Subject(kind=kind, namespace=namespace, name=name)
    return Subject(kind=kind, api_group=GROUP, name=name)
