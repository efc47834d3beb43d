"""The tables are those of helpers_test.go and v1/helper/helpers_test.go in
staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kcm.api.apiregistration_v1 import (
    APIService,
    APIServiceCondition,
    APIServiceStatus,
    find_condition,
    is_true,
    local_condition,
    with_condition,
)
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.kinds.printing.columns import columns_of
from kcm.store.strategies.kinds import strategy_of
from tests.samples import sample

EARLY, LATE = datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 2, tzinfo=UTC)


def condition(
    kind: str, status: str = "True", words: str = "", at: datetime = EARLY
) -> APIServiceCondition:
    return APIServiceCondition(
        type=kind, status=status, reason=words, message=words, last_transition_time=at
    )


def service(*conditions: APIServiceCondition) -> APIService:
    return APIService(
        metadata=ObjectMeta(name="v1.a"), status=APIServiceStatus(conditions=list(conditions))
    )


def test_a_condition_is_found_by_its_type() -> None:  # TestGetAPIServiceConditionByType
    a, b = condition("A"), condition("B")
    assert find_condition(service(a, b), "A") == a
    assert find_condition(service(a), "B") is None


@pytest.mark.parametrize(
    ("conditions", "wanted"),
    [([], False), ([condition("A", "False")], False), ([condition("A")], True)],
)
def test_a_condition_may_be_true(conditions: list[APIServiceCondition], wanted: bool) -> None:
    # TestIsAPIServiceConditionTrue
    assert is_true(service(*conditions), "A") is wanted


@pytest.mark.parametrize("before", [[], [condition("A", words="a1")]])
def test_a_condition_is_set(
    before: list[APIServiceCondition],
) -> None:  # TestSetAPIServiceCondition
    assert find_condition(service(), "A") is None
    new = condition("A", words="a2")
    assert with_condition(service(*before), new).status.conditions == [new]


def test_the_time_changes_with_the_status_only() -> None:
    old = service(condition("A", "True"))
    same = with_condition(old, condition("A", "True", "more", LATE))
    other = with_condition(old, condition("A", "False", "more", LATE))
    assert [c.last_transition_time for c in same.status.conditions or ()] == [EARLY]
    assert [c.last_transition_time for c in other.status.conditions or ()] == [LATE]


RESOURCE = APIService.resource
SERVICES = "apiservices.apiregistration.k8s.io"


@pytest.mark.parametrize(
    ("conditions", "shown"),
    [
        ([], "Unknown"),
        ([condition("Available", "True", "Passed")], "True"),
        ([condition("Available", "False", "ServiceNotFound")], "False (ServiceNotFound)"),
        ([condition("Available", "False")], "False"),
    ],
)
def test_the_columns_say_where_the_server_is_and_whether_it_answers(
    conditions: list[APIServiceCondition], shown: str
) -> None:
    obj = sample(SERVICES).with_status(APIServiceStatus(conditions=conditions))
    columns = columns_of(RESOURCE)
    assert [column.title.upper() for column in columns] == ["NAME", "SERVICE", "AVAILABLE", "AGE"]
    assert [column.cell(obj, LATE) for column in columns[1:3]] == ["default/fruits", shown]


def test_an_api_without_a_service_is_local() -> None:
    obj = service()
    assert columns_of(RESOURCE)[1].cell(obj, LATE) == "Local"
    created = strategy_of(RESOURCE).for_create(obj.with_metadata(creation_timestamp=EARLY))
    assert isinstance(created, APIService)
    assert created.status.conditions == [local_condition(EARLY)]
    remote = strategy_of(RESOURCE).for_create(sample(SERVICES))
    assert isinstance(remote, APIService)
    assert remote.status.conditions is None
