from __future__ import annotations

import pytest

from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.scheme import BUILT_IN, Scheme
from kcm.apiextensions import conditions
from kcm.apiextensions.registration import register
from kcm.testing.builders import START
from tests.unit.apiextensions.samples import accept_names, definition


def list_conditions(definition: CustomResourceDefinition) -> dict[str, tuple[str, str | None]]:
    return {c.type: (c.status, c.reason) for c in definition.status.conditions or ()}


def test_names_that_nobody_has_are_accepted() -> None:
    new_definition = accept_names(definition())
    assert list_conditions(new_definition) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert new_definition.status.accepted_names == new_definition.spec.names


def test_what_is_settled_stays_as_it_is() -> None:
    new_definition = accept_names(definition())
    assert conditions.settle(new_definition, [new_definition], START) is new_definition


def test_names_that_others_have_are_not_accepted() -> None:
    first, second = accept_names(definition()), definition("crows", "CronTab")
    new_definition = conditions.settle(second, [first, second], START)
    assert list_conditions(new_definition) == {
        "NamesAccepted": ("False", "ListKindConflict"),
        "Established": ("False", "NotAccepted"),
    }
    message = conditions.find(new_definition, "NamesAccepted")
    assert message is not None
    assert message.message == '"CronTabList" is already in use'
    assert new_definition.status.accepted_names is not None
    assert new_definition.status.accepted_names.plural == "crows"


def test_names_become_free_when_their_holder_goes() -> None:
    refused = conditions.settle(definition("crows", "CronTab"), [accept_names(definition())], START)
    assert conditions.is_true(conditions.settle(refused, [], START), "Established")


def test_an_established_kind_stays_so_when_it_asks_for_a_name_that_is_taken() -> None:
    other = accept_names(definition("crows", "Crow"))
    mine = accept_names(definition("crontabs", "CronTab"))
    names = mine.spec.names.replace(short_names=["crows"])
    mine = mine.with_spec(mine.spec.replace(names=names))
    new_definition = conditions.settle(mine, [other], START)
    assert list_conditions(new_definition)["NamesAccepted"] == ("False", "ShortNamesConflict")
    assert list_conditions(new_definition)["Established"] == ("True", "InitialNamesAccepted")
    assert new_definition.status.accepted_names is not None
    assert new_definition.status.accepted_names.short_names == ["cr"]


def test_a_definition_waits_for_its_objects() -> None:
    new_definition = conditions.begin_termination(accept_names(definition()), START)
    assert new_definition.metadata.finalizers == [conditions.CLEANUP]
    assert list_conditions(new_definition)["Terminating"] == ("True", "InstanceDeletionPending")
    waiting = conditions.mark_terminating(new_definition, START, left=2)
    assert list_conditions(waiting)["Terminating"] == ("True", "InstanceDeletionInProgress")
    assert waiting.metadata.finalizers == [conditions.CLEANUP]
    done = conditions.mark_terminating(waiting, START, left=0)
    assert list_conditions(done)["Terminating"] == ("False", "InstanceDeletionCompleted")
    assert done.metadata.finalizers is None


def test_a_definition_that_was_never_served_goes_at_once() -> None:
    new_definition = conditions.mark_terminating(
        conditions.begin_termination(definition(), START), START, left=0
    )
    assert list_conditions(new_definition)["Terminating"] == ("False", "NeverEstablished")
    assert new_definition.metadata.finalizers is None


@pytest.mark.parametrize(
    ("group", "plural", "kind"),
    [
        ("rbac.authorization.k8s.io", "clusterrolebindings", "Foo"),
        ("rbac.authorization.k8s.io", "foos", "ClusterRoleBinding"),
        ("apps", "deployments", "Deployment"),
        ("apps", "deploy", "Foo"),
        ("events.k8s.io", "events", "Event"),
        ("autoscaling", "horizontalpodautoscalers", "Foo"),
        ("authorization.k8s.io", "subjectaccessreviews", "Foo"),
        ("metrics.k8s.io", "nodes", "Foo"),
    ],
)
def test_names_of_the_system_are_not_accepted(group: str, plural: str, kind: str) -> None:
    body = codec.to_dict(definition(plural, kind))
    body["spec"]["group"] = group
    body["spec"]["names"]["shortNames"] = []
    body["metadata"]["name"] = f"{plural}.{group}"
    body["status"] = {
        "acceptedNames": body["spec"]["names"],
        "conditions": [
            {"type": each, "status": "True"} for each in ("NamesAccepted", "Established")
        ],
    }
    decoded = codec.decode(body, BUILT_IN)
    assert isinstance(decoded, CustomResourceDefinition)
    new_definition = conditions.settle(decoded, [], START)
    assert {name: status for name, (status, _) in list_conditions(new_definition).items()} == {
        "NamesAccepted": "False",
        "Established": "False",
    }
    accepted = conditions.find(new_definition, "NamesAccepted")
    assert accepted is not None
    assert "by a built-in kind" in (accepted.message or "")
    assert conditions.settle(new_definition, [], START) is new_definition
    scheme = Scheme()
    assert not register(scheme, decoded)
    assert scheme.served() == BUILT_IN.served()


def test_the_same_words_in_another_group_are_fine() -> None:
    body = codec.to_dict(definition("deployments", "Deployment"))
    obj = codec.decode(body, BUILT_IN)
    assert isinstance(obj, CustomResourceDefinition)
    assert conditions.is_true(accept_names(obj), "Established")
