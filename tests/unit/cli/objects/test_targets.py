from __future__ import annotations

import click
import pytest

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.cli.objects.targets import parse_targets


def names(words: list[str]) -> list[tuple[str, tuple[str, ...]]]:
    return [(target.resource.name, target.names) for target in parse_targets(words, BUILT_IN)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pods"], [("pods", ())]),
        (["rs,po"], [("replicasets.apps", ()), ("pods", ())]),
        (["pod", "a", "b"], [("pods", ("a", "b"))]),
        (["rs/web", "pod/a"], [("replicasets.apps", ("web",)), ("pods", ("a",))]),
        (
            ["all"],
            [
                ("pods", ()),
                ("services", ()),
                ("replicationcontrollers", ()),
                ("deployments.apps", ()),
                ("daemonsets.apps", ()),
                ("replicasets.apps", ()),
                ("statefulsets.apps", ()),
                ("horizontalpodautoscalers.autoscaling", ()),
                ("cronjobs.batch", ()),
                ("jobs.batch", ()),
            ],
        ),
        (["pods,pod"], [("pods", ())]),
    ],
)
def test_kubectls_ways_to_name_objects_are_understood(
    words: list[str], expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert names(words) == expected


@pytest.mark.parametrize("words", [[], ["rs/web", "pod"], ["pod/", "x"], ["a/b/c"]])
def test_words_that_do_not_fit_together_are_refused(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse_targets(words, BUILT_IN)


def test_an_unknown_kind_is_answered_with_a_suggestion() -> None:
    with pytest.raises(errors.UnknownKind, match="did you mean pod"):
        parse_targets(["podz"], BUILT_IN)
