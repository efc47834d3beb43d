"""Field selectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apiextensions.field_selectors import FieldSelector, FieldTerm
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.testing import builders
from tests.samples import sample

PODS = Pod.resource


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("spec.nodeName=n1", True),
        ("spec.nodeName==n1", True),
        ("spec.nodeName!=n1", False),
        ("spec.nodeName=", False),
        ("spec.nodeName=n1,status.phase!=Failed", True),
        ("spec.nodeName=n1,status.phase=Failed", False),
        ("metadata.name=web-1,metadata.namespace=default", True),
        ("status.nominatedNodeName=", True),
        ("spec.hostNetwork=false", True),
        ("spec.restartPolicy=Always,spec.schedulerName=default-scheduler", True),
        ("status.podIP=,status.podIPs=,spec.serviceAccountName=", True),
    ],
)
def test_pods_are_selected_by_their_fields(text: str, expected: bool) -> None:
    assert FieldSelector.parse(text).matches(builders.pod(node="n1"), PODS) is expected


def matches(text: str, obj: KubeObject) -> bool:
    return FieldSelector.parse(text).matches(obj, obj.resource)


def test_each_kind_has_its_own_fields() -> None:
    assert matches("spec.unschedulable=true", builders.node(unschedulable=True))
    assert matches("status.phase=Active,name=default", builders.namespace())
    assert matches("status.replicas=2", builders.replica_set(status={"replicas": 2}))
    assert matches("metadata.name=l", builders.lease("l"))
    assert matches("type=Opaque", sample("secrets"))
    assert matches("spec.type=ClusterIP,spec.clusterIP=", sample("services"))
    event = builders.event(builders.pod("web-1"), reason="Scheduled", component="x")
    about = "involvedObject.kind=Pod,involvedObject.name=web-1,involvedObject.namespace=default"
    assert matches(f"{about},involvedObject.uid={event.involved_object.uid}", event)
    assert matches("involvedObject.apiVersion=v1,involvedObject.fieldPath=", event)
    assert matches("involvedObject.resourceVersion=,reportingComponent=x", event)
    assert matches("reason=Scheduled,type=Normal,source=x", event)


def test_an_unsupported_field_is_refused_in_upstreams_words() -> None:
    with pytest.raises(errors.BadRequest, match=r"^field label not supported: spec\.x$"):
        FieldSelector.parse("spec.x=1").matches(builders.pod(), PODS)


@pytest.mark.parametrize("text", ["a", "a,b=c", "a=b=c", "a=b\\", "a=\\x"])
def test_a_malformed_selector_is_refused(text: str) -> None:
    with pytest.raises(errors.BadRequest, match="invalid"):
        FieldSelector.parse(text)


def test_an_empty_selector_says_so() -> None:
    assert FieldSelector.parse("").empty
    assert not FieldSelector.parse("a=b").empty


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=8)), max_size=3))
def test_printing_and_parsing_again_gives_the_same_terms(values: list[tuple[bool, str]]) -> None:
    selector = FieldSelector(tuple(FieldTerm("metadata.name", n, v) for n, v in values))
    assert FieldSelector.parse(str(selector)) == selector
