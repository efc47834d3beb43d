"""Tests of indexed Jobs, and of success policies."""

from __future__ import annotations

import pytest

from kcm.api.batch_v1 import COMPLETION_INDEX, SuccessPolicy
from kcm.api.core_v1 import Pod
from kcm.api.core_v1.environment import EnvVarSource, ObjectFieldSelector
from kcm.apimachinery.completion_indexes import Indexes, overlap, parse_strictly
from kcm.controllers.job.removal import choose_pods_to_remove
from kcm.reconcile.plan import Create
from kcm.testing import builders
from tests.unit.controllers.jobs import Jobs, build_indexed_job


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([1, 2], "1,2"),
        ([1, 2, 3], "1-3"),
        ([0, 2, 3, 4, 7, 8], "0,2-4,7,8"),
    ],
)
def test_indexes_are_written_compactly(indexes: list[int], text: str) -> None:
    assert str(Indexes().with_indexes(indexes)) == text
    assert Indexes.parse(text, 100) == Indexes().with_indexes(indexes)


def test_indexes_that_the_job_has_no_more_are_left_out() -> None:
    assert str(Indexes.parse("0,3-9,20", 6)) == "0,3-5"
    assert str(Indexes.parse("x,2,4-y", 6)) == "2"


def test_sets_of_indexes() -> None:
    indexes = Indexes.parse("1,3-5", 10)
    assert [index for index in range(8) if index in indexes] == [1, 3, 4, 5]
    assert len(indexes) == 4
    assert list(indexes.missing(8)) == [0, 2, 6, 7]
    assert indexes.common(Indexes.parse("0-3,5-9", 10)) == 3
    assert str(indexes | Indexes.parse("2", 10)) == "1-5"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("3,1", "non-increasing order, previous: 3, current: 1"),
        ("3-3", "non-increasing order, previous: 3, current: 3"),
        ("x", 'cannot convert string to integer for index: "x"'),
        ("10", 'too large index: "10"'),
        ("1-2-3", 'the fragment "1-2-3" violates the requirement that an index interval can '
                  "have at most two parts separated by '-'"),
    ],
)  # fmt: skip
def test_what_is_no_set_of_indexes_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="^" + complaint.replace("(", r"\(") + "$"):
        parse_strictly(text, 10)


def test_an_overlap_is_found() -> None:
    assert overlap("1,3-5", "0,2,4-9", 10) == 4
    assert overlap("1,3-5", "0,2,6-9", 10) is None
    assert overlap("5,1-2", "x,2-9", 10) == 2  # unsorted, with a part that cannot be read


def test_long_texts_are_compared_in_one_walk() -> None:
    count = 100_000
    even = ",".join(map(str, range(0, count, 2)))
    odd = ",".join(map(str, range(1, count, 2)))
    assert overlap(even, odd, count) is None  # each with each, it would take half an hour


def test_each_index_gets_a_pod_with_its_number() -> None:
    jobs = Jobs(build_indexed_job(5, 3))
    jobs.sync()
    assert jobs.indexes() == [0, 1, 2]
    pod = jobs.at(2)
    assert pod.labels[COMPLETION_INDEX] == "2"
    assert pod.spec.hostname == "work-2"
    assert pod.name.startswith("work-2-")
    (variable,) = pod.spec.containers[0].env or []
    path = f"metadata.labels['{COMPLETION_INDEX}']"
    source = EnvVarSource(field_ref=ObjectFieldSelector(api_version="v1", field_path=path))
    assert (variable.name, variable.value_from) == ("JOB_COMPLETION_INDEX", source)


def test_a_long_name_keeps_its_index() -> None:
    name = "a" * 60
    jobs = Jobs(builders.job(name, completion_mode="Indexed", completions=1, parallelism=1))
    [create] = [write for write in jobs.plan().writes if isinstance(write, Create)]
    assert create.obj.metadata.generate_name == "a" * 55 + "-0-"


def test_completed_indexes_are_kept_and_the_first_free_ones_come_next() -> None:
    jobs = Jobs(build_indexed_job(6, 3))
    jobs.sync()
    jobs.succeed(jobs.at(0), jobs.at(2))
    jobs.settle()
    assert jobs.indexes() == [1, 3, 4]
    assert (jobs.status.completed_indexes, jobs.counts()) == ("0,2", (3, 2, 0))
    jobs.succeed(*jobs.active)
    jobs.settle()
    assert jobs.status.completed_indexes == "0-4"
    jobs.succeed(*jobs.active)
    jobs.settle()
    assert (jobs.status.completed_indexes, list(jobs.conditions())[-1]) == ("0-5", "Complete")


def test_a_failed_index_is_tried_again() -> None:
    jobs = Jobs(build_indexed_job(2))
    jobs.sync()
    jobs.fail(jobs.at(1))
    jobs.settle()
    assert jobs.indexes() == [0]
    jobs.step(10)
    jobs.settle()
    assert (jobs.indexes(), jobs.counts()) == ([0, 1], (2, 0, 1))


def test_pods_that_share_an_index_and_those_without_a_good_one_go() -> None:
    def of(name: str, index: str | None, phase: str = "Pending") -> Pod:
        annotations = {} if index is None else {COMPLETION_INDEX: index}
        return builders.pod(name, phase=phase, node="n1", metadata={"annotations": annotations})

    pods = choose_pods_to_remove(
        build_indexed_job(3),
        [of("a", "0"), of("b", "0", "Running"), of("c", "1"), of("d", None), of("e", "7")],
        0,
    )
    assert sorted(pod.name for pod in pods) == ["a", "d", "e"]


def test_a_job_that_is_scaled_down_forgets_indexes_that_it_has_no_more() -> None:
    jobs = Jobs(build_indexed_job(4))
    jobs.sync()
    jobs.succeed(jobs.at(3), jobs.at(0))
    jobs.settle()
    assert jobs.status.completed_indexes == "0,3"
    jobs.change(completions=2, parallelism=2)
    jobs.settle()
    assert (jobs.status.completed_indexes, jobs.indexes(), jobs.counts()) == ("0", [1], (1, 1, 0))
    jobs.change(completions=3, parallelism=3)
    jobs.settle()
    assert jobs.indexes() == [1, 2]


@pytest.mark.parametrize(
    ("rule", "succeeded", "met"),
    [
        ({"succeededIndexes": "0,2"}, [0, 2], True),
        ({"succeededIndexes": "0,2"}, [0, 1], False),
        ({"succeededCount": 2}, [1, 3], True),
        ({"succeededCount": 2}, [1], False),
        ({"succeededIndexes": "0-2", "succeededCount": 1}, [2], True),
        ({"succeededIndexes": "0-2", "succeededCount": 1}, [3], False),
    ],
)
def test_some_indexes_may_be_enough(
    rule: dict[str, object], succeeded: list[int], met: bool
) -> None:
    policy = SuccessPolicy.model_validate({"rules": [rule]})
    jobs = Jobs(build_indexed_job(4, success_policy=policy))
    jobs.sync()
    jobs.place()
    jobs.succeed(*(jobs.at(index) for index in succeeded))
    jobs.settle()
    expected = {"SuccessCriteriaMet": "SuccessPolicy"} if met else {}
    assert jobs.conditions() == expected
    if met:
        jobs.end()
        jobs.settle()
        assert jobs.conditions()["Complete"] == "SuccessPolicy"
        assert jobs.counts() == (0, len(succeeded), 0)  # the others have not failed
        assert jobs.left == []


def test_success_once_decided_is_not_undone_by_failures() -> None:
    policy = SuccessPolicy.model_validate({"rules": [{"succeededCount": 1}]})
    jobs = Jobs(build_indexed_job(3, success_policy=policy, backoff_limit=0))
    jobs.sync()
    jobs.place()
    jobs.succeed(jobs.at(0))
    jobs.sync()
    jobs.end()  # the others end as failed
    jobs.settle()
    assert jobs.conditions()["Complete"] == "SuccessPolicy"
