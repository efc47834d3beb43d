"""The server's flags about API servers that it passes requests on to.

Source: cmd/kube-apiserver/app/options/options.go and
staging/src/k8s.io/apiserver/pkg/server/options/authentication.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import click

from kcm import errors
from kcm.apiserver import credentials
from kcm.apiserver.aggregation.aggregation import AggregationOptions
from kcm.apiserver.aggregation.authentication_trust import TrustedAuthorities
from kcm.apiserver.auth.authenticators import check_authorities
from kcm.apiserver.auth.flags import EXISTING_FILE
from kcm.http.trust import check_certificate

_FLAGS = (
    click.option(
        "--proxy-client-cert-file",
        type=EXISTING_FILE,
        help="File of the client certificate that is shown to other API servers, which then "
        "believe the headers that say who sends a request. Needs --proxy-client-key-file.",
    ),
    click.option(
        "--proxy-client-key-file",
        type=EXISTING_FILE,
        help="File of that certificate's key.",
    ),
    click.option(
        "--requestheader-client-ca-file",
        type=EXISTING_FILE,
        help="File of the authority that signed that certificate. The ConfigMap "
        "extension-apiserver-authentication in kube-system names it to other API servers.",
    ),
)


@dataclass(frozen=True)
class AggregationFlags:
    """The values of the flags."""

    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None

    @classmethod
    def take(cls, values: dict[str, Any]) -> AggregationFlags:
        """Removes the values of these flags from those of a command, and returns them."""
        return cls(
            certificate=values.pop("proxy_client_cert_file"),
            key=values.pop("proxy_client_key_file"),
            authority=values.pop("requestheader_client_ca_file"),
        )

    def complete(self, folder: Path) -> AggregationFlags:
        """Returns the flags with generated files in a folder, unless a certificate is given.

        Raises ConfigurationError.
        """
        if self.certificate is not None or self.key is not None:
            return self
        made = credentials.front_proxy(folder)
        return replace(
            self,
            certificate=made.client.certificate,
            key=made.client.key,
            authority=self.authority or made.authority,
        )

    def load(self, client_authorities: Path | None) -> AggregationOptions:
        """Returns the options. `client_authorities` is the file of the authorities of clients.

        Raises ConfigurationError if a file cannot be used.
        """
        if (self.certificate is None) != (self.key is None):
            raise errors.ConfigurationError(
                "--proxy-client-cert-file and --proxy-client-key-file must be used together"
            )
        certificate = b""
        if self.certificate is not None and self.key is not None:
            try:
                certificate = self.certificate.read_bytes() + b"\n" + self.key.read_bytes()
                check_certificate(certificate)
            except OSError as error:
                raise errors.ConfigurationError(
                    f"--proxy-client-cert-file {self.certificate} cannot be used: {error}"
                ) from None
        if self.authority is not None:
            check_authorities(self.authority, "--requestheader-client-ca-file")
        return AggregationOptions(
            certificate,
            TrustedAuthorities(client_authorities, self.authority),
        )


def add_aggregation_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags about other API servers to a command."""
    return reduce(lambda decorated, option: option(decorated), reversed(_FLAGS), command)
