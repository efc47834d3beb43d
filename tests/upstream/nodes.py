"""Cases of who may do what: roles, the authorizer of nodes and the plugin NodeRestriction."""

from __future__ import annotations

import collections

from tests.upstream import adapter, cases
from tests.upstream.accepted import Differences
from tests.upstream.adapter import NodeGraph, NotExpressible
from tests.upstream.cases import Case

_SLICES = "resourceslices"
# The cases of upstream's table whose authorizer allows tokens for any audience.
_AUTHORIZED = frozenset({135, 136, 137})


def compare_authorizer() -> Differences:
    """Returns where roles and bindings allow what upstream refuses, or the reverse."""
    differing: dict[int, str] = {}
    for number, case in cases.read("authorizer"):
        got = adapter.authorize(case["objects"], case["asked"])
        if got != case["want"]:
            differing[number] = f"{case['asked']}: wanted {case['want']}, got {got}"
    return {"authorizer": differing}


def compare_approvals() -> Differences:
    """Returns where the certificate of a kubelet is approved that upstream leaves to others, or the
    reverse.
    """
    differing: dict[int, str] = {}
    for number, case in cases.read("approvals"):
        got = adapter.approves(case["csr"], "selfnodeclient" if case["self"] else "nodeclient")
        if got != case["want"]:
            differing[number] = f"{case['csr']['spec']}: wanted {case['want']}, got {got}"
    return {"approvals": differing}


def compare_node_authorizer() -> Differences:
    """Returns where the node authorizer decides or explains otherwise.

    Cases without the gate AuthorizeNodeWithSelectors are left out: it cannot be switched off. Those
    that need a ResourceSlice are left out, too: the printing program did not know them.
    """
    graphs: dict[int, NodeGraph] = collections.defaultdict(NodeGraph)
    decisions: dict[int, str] = {}
    reasons: dict[int, str] = {}
    for number, case in cases.read("node_authorizer"):
        graph, arguments = graphs[case["g"]], case["args"]
        if case["op"] != "Authorize":
            graph.change(case["op"], arguments)
            continue
        asked = arguments[0]
        allowed = asked["decision"] == 1
        if not asked["selectors"] or (asked["resource"] == _SLICES and asked["name"] and allowed):
            continue
        try:
            got = graph.authorize(asked)
        except NotExpressible as reason:
            decisions[number] = f"not expressible: {reason}"
            continue
        if got.allowed != allowed:
            decisions[number] = f"{asked}; kcm: {got}"
        elif not got.allowed and got.reason != asked["reason"]:
            reasons[number] = f"wanted {asked['reason']!r}; kcm: {got.reason!r}"
    return {"node authorizer: decisions": decisions, "node authorizer: reasons": reasons}


def compare_node_restriction() -> Differences:
    """Returns where NodeRestriction admits what upstream forbids, or the reverse, and where its
    words differ.

    Cases with a gate off that cannot be switched off are left out, and those of ResourceSlices,
    which the printing program did not know.
    """
    decisions: dict[int, str] = {}
    words: dict[int, str] = {}
    for number, case in cases.read("node_restriction"):
        if _needs_a_gate_off(case) or case["resource"] == _SLICES:
            continue
        want = case.get("err", "")
        try:
            got = adapter.restrict_node(case, authorized=number in _AUTHORIZED)
        except NotExpressible as reason:
            decisions[number] = f"not expressible: {reason}"
            continue
        if bool(want) != bool(got):
            decisions[number] = f"{case['op']} {case['resource']}/{case['sub']}: {want!r}; {got!r}"
        elif want.split("is forbidden: ")[-1] != got.split("is forbidden: ")[-1]:
            words[number] = f"wanted {want!r}; kcm: {got!r}"
    return {"node restriction: decisions": decisions, "node restriction: words": words}


def _needs_a_gate_off(case: Case) -> bool:
    claims = case["resource"] == "persistentvolumeclaims"
    return bool(
        case["insecureCSR"]
        or (case["resource"] == "serviceaccounts" and not case["audienceCheck"])
        or (claims and "AllocatedResources" in case.get("err", ""))
    )
