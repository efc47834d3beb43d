"""The file of the option --root-ca-file."""

from __future__ import annotations

from pathlib import Path

from kcm import errors


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
