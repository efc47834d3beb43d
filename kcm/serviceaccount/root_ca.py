"""The option --root-ca-file, which two controllers share, and its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from kcm import errors


def root_ca_option() -> Any:
    """Returns the field of the option."""
    return Field(
        default="",
        description="If set, this root certificate authority will be included in service account's "
        "token secret, and in the ConfigMap kube-root-ca.crt of each namespace. This must be a "
        "valid PEM-encoded CA bundle.",
    )


def read_bundle(path: str) -> str:
    """Returns the certificates of a bundle as PEM, "" for the path "". Raises ConfigurationError.

    Text between the certificates is kept, as upstream does.
    """
    if not path:
        return ""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise errors.ConfigurationError(f"--root-ca-file {path}: {error}") from None
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise errors.ConfigurationError(f"--root-ca-file {path}: it has no certificates")
    return text
