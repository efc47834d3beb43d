"""The server's flags about service account tokens: reads their files and checks their values.

Source: pkg/kubeapiserver/options/authentication.go (ServiceAccountAuthenticationOptions) and
pkg/controlplane/apiserver/options/options.go, Kubernetes 1.33. Departure: without flags, a key is
generated in the state folder, and the issuer is that of clusters made by kubeadm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kcm import errors
from kcm.apimachinery.durations import parse_duration
from kcm.apiserver.auth import flags
from kcm.apiserver.auth.service_accounts import TokenOptions
from kcm.helpers.serviceaccount import tokens
from kcm.helpers.serviceaccount.discovery import JWKS_PATH
from kcm.helpers.serviceaccount.tokens import DEFAULT_ISSUER

KEY_FILE = "sa.key"  # in the state folder
_SHORTEST, _LONGEST = 60 * 60, 1 << 32  # seconds of --service-account-max-token-expiration
_ISSUER = "service-account-issuer"
_SIGNING, _VERIFYING = "service-account-signing-key-file", "service-account-key-file"


@dataclass(frozen=True)
class TokenFlags:
    """The values of the flags. `signing_key_file` None is the one in the state folder."""

    key_files: tuple[Path, ...] = ()
    signing_key_file: Path | None = None
    issuers: tuple[str, ...] = ()
    jwks_uri: str = ""
    api_audiences: str = ""
    max_expiration: str = "0s"
    extend_expiration: bool = True

    @classmethod
    def take(cls, values: dict[str, Any]) -> TokenFlags:
        """Removes the values of these flags from those of a command, and returns them."""
        return cls(
            key_files=values.pop("service_account_key_files"),
            signing_key_file=values.pop("service_account_signing_key_file"),
            issuers=values.pop("service_account_issuers"),
            jwks_uri=values.pop("service_account_jwks_uri"),
            api_audiences=values.pop("api_audiences"),
            max_expiration=values.pop("service_account_max_token_expiration"),
            extend_expiration=values.pop("service_account_extend_token_expiration"),
        )

    def load(self, folder: Path, url: str) -> TokenOptions:
        """Returns the options. Without a flag, the signing key is generated if it is missing.

        `folder` is the state folder, `url` the server's own. Raises ConfigurationError.
        """
        file = self.signing_key_file or folder / KEY_FILE
        if self.signing_key_file is None:
            tokens.ensure_key_file(file)
        signing = tokens.read_signing_key(file, _SIGNING)
        verifying = tokens.read_verification_keys(self.key_files or (file,), _VERIFYING)
        issuers = self.issuers or (DEFAULT_ISSUER,)
        for issuer in issuers:
            _check_issuer(issuer)
        audiences = tuple(part.strip() for part in self.api_audiences.split(",") if part.strip())
        return TokenOptions(
            signing_key=signing,
            keys=tuple(verifying),
            issuers=issuers,
            audiences=audiences or issuers[:1],
            max_expiration=_parse_max(self.max_expiration),
            extend_expiration=self.extend_expiration,
            jwks_uri=self.jwks_uri or f"{url}{JWKS_PATH}",
        )


def add_token_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags of service account tokens to a command."""
    options = (
        flags.service_account_key_file,
        flags.service_account_signing_key_file,
        flags.service_account_issuer,
        flags.service_account_jwks_uri,
        flags.api_audiences,
        flags.service_account_max_token_expiration,
        flags.service_account_extend_token_expiration,
    )
    return reduce(lambda decorated, option: option(decorated), reversed(options), command)


def _check_issuer(issuer: str) -> None:
    if not issuer:
        raise errors.ConfigurationError(f"--{_ISSUER} must not be empty")
    if ":" in issuer:
        try:
            urlsplit(issuer)
        except ValueError as error:
            raise errors.ConfigurationError(
                f"--{_ISSUER} {issuer!r} contains a ':' but is not a valid URL: {error}"
            ) from None


def _parse_max(text: str) -> int:
    flag = "service-account-max-token-expiration"
    try:
        seconds = parse_duration(text).total_seconds()
    except ValueError as error:
        raise errors.ConfigurationError(f"--{flag} {text!r}: {error}") from None
    if seconds and not _SHORTEST <= seconds <= _LONGEST:
        raise errors.ConfigurationError(
            f"--{flag} must be between 1 hour and 2^32 seconds, not {text}"
        )
    return int(seconds)
