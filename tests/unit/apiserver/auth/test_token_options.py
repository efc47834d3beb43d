from __future__ import annotations

from pathlib import Path

import pytest

from kcm import errors
from kcm.apiserver.auth.token_options import TokenFlags
from kcm.helpers.serviceaccount import tokens

URL = "https://127.0.0.1:8001"


def test_without_flags_a_key_is_made_and_kept(tmp_path: Path) -> None:
    first, second = TokenFlags().load(tmp_path, URL), TokenFlags().load(tmp_path, URL)
    assert first.signing_key.verification.id == second.keys[0].id
    assert first.issuers == first.audiences == ("https://kubernetes.default.svc.cluster.local",)
    assert first.jwks_uri == f"{URL}/openid/v1/jwks"
    assert first.extend_expiration


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    flags = TokenFlags(signing_key_file=tmp_path / "none")
    with pytest.raises(errors.ConfigurationError, match="--service-account-signing-key-file"):
        flags.load(tmp_path, URL)


def test_further_keys_verify_and_do_not_sign(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    tokens.ensure_key_file(old)
    tokens.ensure_key_file(new)
    options = TokenFlags((old, new), new).load(tmp_path, URL)
    ids = [tokens.read_signing_key(file, "").verification.id for file in (old, new)]
    assert [key.id for key in options.keys] == ids
    assert options.signing_key.verification.id == ids[1]


def test_audiences_are_separated_by_commas(tmp_path: Path) -> None:
    flags = TokenFlags(issuers=("https://a", "https://b"), api_audiences="x, y")
    options = flags.load(tmp_path, URL)
    assert (options.issuers, options.audiences) == (("https://a", "https://b"), ("x", "y"))


@pytest.mark.parametrize("value", ["59m", "0.5s", "1193047h", "soon"])
def test_the_longest_validity_has_bounds(value: str, tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match="service-account-max-token-expiration"):
        TokenFlags(max_expiration=value).load(tmp_path, URL)
    assert TokenFlags(max_expiration="1h").load(tmp_path, URL).max_expiration == 3600


def test_an_issuer_with_a_colon_is_a_url(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match="not a valid URL"):
        TokenFlags(issuers=("http://[",)).load(tmp_path, URL)
