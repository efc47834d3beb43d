from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kcm import errors
from kcm.api.scheme import BUILT_IN, Scheme
from kcm.store.remote.discovery import ServedKind
from kcm.store.remote.kinds import RemoteKinds
from tests.unit.store.remote.answers import Answers
from tests.unit.store.remote.test_discovery import (
    NODES,
    PODS,
    THINGS,
    aggregated,
    in_version,
    listed,
)

AUTOSCALERS = ServedKind(
    "autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True, PODS.verbs
)


def serve(client: Answers, core: Sequence[ServedKind], *groups: Sequence[ServedKind]) -> None:
    client.answers["GET /api"] = listed(aggregated("", in_version("v1", *core)))
    client.answers["GET /apis"] = listed(
        *(
            aggregated(kinds[0].group, *(in_version(kind.version, kind) for kind in kinds))
            for kinds in groups
        )
    )


def test_of_each_kind_the_versions_are_taken_that_both_sides_have() -> None:
    client, scheme = Answers({}), Scheme()
    serve(client, [PODS], [AUTOSCALERS, replace(AUTOSCALERS, version="v3")])
    RemoteKinds(client, scheme).refresh()
    assert [resource.name for resource in scheme.resources()] == [
        "pods",
        AUTOSCALERS.plural + ".autoscaling",
    ]
    v1, v3 = scheme.versions("horizontalpodautoscalers.autoscaling")
    assert v1 is BUILT_IN.at("autoscaling", "v1", AUTOSCALERS.plural)
    assert (v3.version, v3.model.metadata_only) == ("v3", True)


def test_a_kind_without_a_model_is_read_as_metadata() -> None:
    client, scheme = Answers({}), Scheme()
    serve(client, [PODS], [THINGS])
    RemoteKinds(client, scheme).refresh()
    things = scheme.by_gvk("example.com/v2", "Thing")
    assert things.model.metadata_only
    assert things.model.resource is things
    assert scheme.by_name("things.example.com") is things


def test_a_kind_that_cannot_be_listed_and_watched_is_left_out() -> None:
    client, scheme = Answers({}), Scheme()
    serve(client, [PODS, NODES])
    RemoteKinds(client, scheme).refresh()
    assert [resource.name for resource in scheme.resources()] == ["pods"]


def test_the_same_answer_changes_nothing() -> None:
    client, scheme = Answers({}), Scheme()
    serve(client, [PODS], [THINGS])
    kinds = RemoteKinds(client, scheme)
    kinds.refresh()
    before = scheme.generation(), scheme.resources()
    kinds.refresh()
    assert (scheme.generation(), scheme.resources()) == before
    serve(client, [PODS])
    kinds.refresh()
    assert [resource.name for resource in scheme.resources()] == ["pods"]
    assert scheme.generation() > before[0]


def test_while_a_group_fails_its_kinds_stay() -> None:
    client, scheme = Answers({}), Scheme()
    serve(client, [PODS], [THINGS])
    kinds = RemoteKinds(client, scheme)
    kinds.refresh()
    stale = aggregated("example.com", in_version("v2", freshness="Stale"))
    client.answers["GET /apis"] = listed(stale)
    kinds.refresh()
    assert scheme.by_name("things.example.com")
    assert list(scheme.undiscovered) == ["example.com/v2"]


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (errors.NotFound("404 page not found"), False),
        ({"items": []}, True),
        (errors.StoreUnavailable("the server is starting"), True),
        (errors.Forbidden("cannot list things"), False),
    ],
)
def test_a_kind_that_is_no_longer_named_stays_until_its_path_is_gone(
    answer: object, kept: bool
) -> None:
    client, scheme = Answers({}), Scheme()
    serve(client, [PODS], [THINGS])
    kinds = RemoteKinds(client, scheme)
    kinds.refresh()
    serve(client, [PODS])
    client.answers["GET /apis/example.com/v2/things"] = answer
    for _ in range(2):
        kinds.refresh()
        names = [resource.name for resource in scheme.resources()]
        assert names == ["pods", *(["things.example.com"] if kept else [])]
