"""Bootstrap tokens, after TestTokenAuthenticator of upstream's bootstrap_test.go."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm.api.core_v1 import Secret
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.auth.authenticators import Credentials
from kcm.apiserver.auth.bootstrap_tokens import GUESS_EVERY, MOST_GUESSES, BootstrapTokens
from kcm.testing.clock import FakeClock
from kcm.testing.views import NOW
from tests.unit.controllers.bootstrap_tokens import token_secret

TOKEN = "abcdef.0123456789abcdef"
ALLOWED = {"usage_bootstrap_authentication": "true"}


def authenticate(secret: Secret | None, token: str = TOKEN) -> User | None:
    def find(model: type[KubeObject], key: str) -> KubeObject | None:
        return secret if secret is not None and secret.key == key else None

    tokens = BootstrapTokens(find, FakeClock(NOW))
    return tokens.authenticate(Credentials(f"Bearer {token}"))


def test_a_valid_token_is_a_bootstrapper() -> None:
    user = authenticate(token_secret(**ALLOWED))
    assert user == User("system:bootstrap:abcdef", groups=("system:bootstrappers",))


def test_a_token_may_have_further_groups_of_bootstrappers() -> None:
    extra = "system:bootstrappers:foo,system:bootstrappers:bar"
    user = authenticate(token_secret(**ALLOWED, auth_extra_groups=extra))
    assert user is not None
    assert user.groups == (
        "system:bootstrappers", "system:bootstrappers:bar", "system:bootstrappers:foo",
    )  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"usage_bootstrap_authentication": "false"},
        {**ALLOWED, "auth_extra_groups": "foo"},
        {**ALLOWED, "auth_extra_groups": "system:masters"},
        {**ALLOWED, "token_secret": "another"},
        {**ALLOWED, "token_secret": ""},
        {**ALLOWED, "expiration": (NOW - timedelta(hours=1)).isoformat()},
        {**ALLOWED, "expiration": "rubbish"},
    ],
)
def test_a_token_that_is_not_valid_is_nobody(fields: dict[str, str]) -> None:
    assert authenticate(token_secret(**fields)) is None


def test_a_token_lasts_until_it_expires() -> None:
    later = (NOW + timedelta(hours=1)).isoformat()
    user = authenticate(token_secret(**ALLOWED))
    assert user == authenticate(token_secret(**ALLOWED, expiration=later))
    assert user != authenticate(token_secret(**ALLOWED, expiration=NOW.isoformat()))


@pytest.mark.parametrize("change", [{"type": "Opaque"}, {"data": None}])
def test_other_secrets_are_no_tokens(change: dict[str, str | None]) -> None:
    assert authenticate(token_secret(**ALLOWED).replace(**change)) is None


def test_a_secret_that_is_being_deleted_is_no_token() -> None:
    assert authenticate(token_secret(**ALLOWED).with_metadata(deletion_timestamp=NOW)) is None


@pytest.mark.parametrize("token", ["", "abcdef", "abcdef.", "ABCDEF.0123456789abcdef", f"{TOKEN}x"])
def test_other_tokens_are_left_to_others(token: str) -> None:
    assert authenticate(token_secret(**ALLOWED), token) is None


def test_guesses_of_one_address_are_bounded_and_those_of_others_are_not_held_up() -> None:
    secret, clock = token_secret(**ALLOWED), FakeClock(NOW)
    tokens = BootstrapTokens(lambda model, key: secret if key == secret.key else None, clock)

    def ask(token: str, peer: str = "10.0.0.1") -> User | None:
        return tokens.authenticate(Credentials(f"Bearer {token}", peer=peer))

    for number in range(MOST_GUESSES):
        assert ask(TOKEN) is not None  # right tokens are free
        assert ask(f"abcdef.{number:016}") is None
    assert ask(TOKEN) is None
    assert ask(TOKEN, "10.0.0.2") is not None
    clock.step(GUESS_EVERY)
    assert ask("zzzzzz.0123456789abcdef") is None  # one more guess, of an id that does not exist
    assert ask(TOKEN) is None
    clock.step(GUESS_EVERY)
    assert ask(TOKEN) is not None


def test_the_id_in_the_secret_must_be_that_of_its_name() -> None:
    renamed = token_secret("123456", **ALLOWED).with_metadata(name="bootstrap-token-abcdef")
    assert authenticate(renamed) is None
