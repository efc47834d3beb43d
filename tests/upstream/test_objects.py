"""Validation, defaults and stored objects agree with those of the API server."""

import pytest

from tests.upstream import accepted, objects

# Some certificates of the cases have serial numbers of which cryptography warns.
pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


def test_verdicts_on_objects_are_the_api_servers() -> None:
    accepted.check(objects.compare_verdicts())


def test_defaults_are_the_api_servers() -> None:
    accepted.check(objects.compare_defaults())


def test_what_is_stored_is_what_the_api_servers_strategies_prepare() -> None:
    accepted.check(objects.compare_stored())
