"""kcm does with upstream's cases what upstream does."""

import pytest

from tests.upstream import accepted
from tests.upstream.comparisons import COMPARISONS

# Some certificates of the cases have serial numbers of which cryptography warns.
pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda compare: compare.__name__)
def test_results_are_upstreams(compare: accepted.Compare) -> None:
    differences = compare()
    assert tuple(differences) == COMPARISONS[compare]
    accepted.check(differences)
