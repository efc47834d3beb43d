"""What a function or a controller does with upstream's cases agrees with upstream."""

import pytest

from tests.upstream import accepted, extensions, nodes, values, volumes


@pytest.mark.parametrize(
    "compare",
    [
        nodes.compare_node_authorizer,
        nodes.compare_node_restriction,
        values.compare_strategic_merge,
        values.compare_quantities,
        values.compare_selectors,
        volumes.compare_binder,
        extensions.compare_definitions,
        extensions.compare_rules,
    ],
)
def test_results_are_upstreams(compare: accepted.Compare) -> None:
    accepted.check(compare())
