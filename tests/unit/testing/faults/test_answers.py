from __future__ import annotations

import pytest

from kcm.apiserver.filters.fault_rules import RequestFacts
from kcm.testing.faults import answers


@pytest.mark.parametrize("code", answers.ANSWERS)
def test_every_answer_has_its_code_for_every_verb(code: int) -> None:
    answer = answers.ANSWERS[code]
    for verb in answer.verbs:
        name = "" if verb in ("list", "watch", "deletecollection") else "web"
        facts = RequestFacts(verb, "apps", "deployments", "", "shop", name, "me", "tool")
        error = answer.build(facts, 1)
        assert error.code == code
        assert error.message
        answers.check(code, verb)


def test_a_denial_says_what_is_denied() -> None:
    facts = RequestFacts("get", "apps", "deployments", "scale", "shop", "web", "me", "tool")
    assert answers.ANSWERS[403].build(facts, 1).message == (
        'deployments.apps "web" is forbidden: User "me" cannot get resource "deployments/scale" '
        'in API group "apps" in the namespace "shop"'
    )


@pytest.mark.parametrize(
    ("verb", "code"), [("get", 409), ("list", 409), ("watch", 409), ("get", 410), ("create", 410)]
)
def test_what_a_server_never_answers_is_refused(verb: str, code: int) -> None:
    with pytest.raises(ValueError, match=f"a server never answers {verb} with {code}"):
        answers.check(code, verb)


@pytest.mark.parametrize("error", [200, 0, "slow", 4.5])
def test_an_unknown_error_is_refused_with_those_that_there_are(error: object) -> None:
    with pytest.raises(ValueError, match="401, 403, 404, 409, 410, 429, 500, 503, 504, 'timeout'"):
        answers.check(error, None)
