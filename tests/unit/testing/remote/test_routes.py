"""How requests of the HTTP API find methods, and what is told if they do not."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.testing import ControlPlane
from kcm.testing.remote.routes import Routes, call


@pytest.fixture
def routes() -> Routes:
    return Routes(ControlPlane())  # which is not started


def test_names_of_arguments_are_told_with_the_error() -> None:
    def function(*, for_: str = "") -> str:
        return for_

    assert call(function, {"for_": "me"}) == "me"
    with pytest.raises(ValueError, match="unexpected keyword argument 'from': this takes for"):
        call(function, {"from": "me"})


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("GET", "/clock", "this API is at /v1"),
        ("GET", "/v2/clock", "this API is at /v1"),
        ("POST", "/v1/clock", "there is no POST /v1/clock"),
        ("POST", "/v1/faults/nodes", "there are no faults of nodes: use api, stale_lists"),
        ("GET", "/v1/faults/7", "there is no fault 7"),
        ("POST", "/v1/nodes/node-1/explode", "there is no explode: use full, heal"),
        ("POST", "/v1/nodes/node-9/stop", 'no simulated node "node-9"'),
    ],
)
def test_what_is_not_there_is_told(routes: Routes, method: str, path: str, words: str) -> None:
    with pytest.raises(errors.NotFound) as raised:
        routes.answer(method, path, {})
    assert words in str(raised.value)


def test_a_fault_is_made_counted_and_removed(routes: Routes) -> None:
    values = {"verb": "update", "resource": "deployments", "error": 409, "for": "my-operator"}
    made = routes.answer("POST", "/v1/faults/api", values)
    assert (made["id"], made["hits"]) == (1, 0)
    assert "my-operator" in made["fault"]
    assert routes.answer("GET", "/v1/faults", {}) == [made]
    assert routes.answer("DELETE", "/v1/faults/1", {}) == made
    assert routes.answer("GET", "/v1/faults", {}) == []


def test_wrong_values_are_refused(routes: Routes) -> None:
    with pytest.raises(ValueError, match="never answers get with 409"):
        routes.answer("POST", "/v1/faults/api", {"verb": "get", "error": 409})
    with pytest.raises(ValueError, match="is no resourceVersion"):
        routes.answer("GET", "/v1/history", {"since": "yesterday"})


@pytest.mark.parametrize(
    ("path", "values", "words"),
    [
        ("/v1/nodes/node-1/stop", {"name": "node-2"}, "'name': this takes nothing"),
        ("/v1/faults/watches", {"kind": "api"}, "'kind': this takes resource"),
    ],
)
def test_arguments_do_not_replace_what_the_path_says(
    routes: Routes, path: str, values: dict[str, str], words: str
) -> None:
    with pytest.raises(ValueError, match="unexpected keyword argument") as raised:
        routes.answer("POST", path, values)
    assert words in str(raised.value)
