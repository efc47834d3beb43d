"""The shared Node object, and requests to report the node status."""

from __future__ import annotations

from kcm.kubelet.node.current_node import CurrentNode, ReportRequests
from kcm.testing import builders


def test_a_node_without_a_uid_is_not_registered() -> None:
    node = builders.node("n1").with_metadata(uid=None)
    current = CurrentNode(node)
    assert (current.get(), current.get_registered()) == (node, None)
    registered = node.with_metadata(uid="1")
    current.set(registered)
    assert current.get_registered() is registered


def test_the_older_field_counts_where_there_are_no_pod_cidrs() -> None:
    node = builders.node("n1")
    current = CurrentNode(node)
    assert list(current.pod_cidrs) == []
    current.set(node.with_spec(node.spec.replace(pod_cidr="10.0.0.0/24")))
    assert list(current.pod_cidrs) == ["10.0.0.0/24"]


def test_a_report_fulfils_the_requests_that_came_before_it_began() -> None:
    requests = ReportRequests()
    assert requests.wait_until_fulfilled(0)
    requests.request()
    assert requests.event.is_set()
    count = requests.begin()
    assert not requests.event.is_set()
    requests.request()  # too late for the report that has begun
    requests.fulfil(count)
    assert requests.event.is_set()
    assert not requests.wait_until_fulfilled(0)
    requests.fulfil(requests.begin())
    assert requests.wait_until_fulfilled(0)
