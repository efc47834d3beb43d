"""Formats errors for people: one line, in kubectl's words."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import click

from kcm import errors

EXIT_FAILURE = 1


def describe(error: errors.KcmError, doing: str = "") -> str:
    """Returns the text that kubectl would print for this error.

    `doing` is put before it, such as `error when creating "web.yaml"`. Source:
    staging/src/k8s.io/kubectl/pkg/cmd/util/helpers.go (StandardErrorMessage), Kubernetes 1.33.
    """
    where = f"{doing}: " if doing else ""
    if isinstance(error, errors.UnknownKind):
        return f"error: {where}{error.message}"
    if isinstance(error, errors.Invalid) and error.kind:
        return _describe_invalid(error)
    if isinstance(error, errors.ApiError):
        return f"Error from server ({error.reason}): {where}{error.message}"
    return f"error: {where}{error.message}"


def _describe_invalid(error: errors.Invalid) -> str:
    subject = f'The {error.kind.partition(".")[0]} "{error.name}" is invalid: '
    if len(error.causes) == 1:
        return subject + str(error.causes[0])
    return subject + "".join(f"\n* {cause}" for cause in error.causes)


def report(error: errors.KcmError, doing: str = "") -> None:
    """Prints the error on standard error."""
    click.echo(describe(error, doing), err=True)


def run_reporting(run: Callable[[], Any]) -> Any:
    """Runs a command. An error of kcm is printed as one line, and the exit code is 1."""
    try:
        return run()
    except errors.KcmError as error:
        if os.environ.get("KCM_DEBUG"):
            raise
        report(error)
    except BrokenPipeError:
        # The reader of the output (`kcm get ... | head`) has closed it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if os.environ.get("KCM_DEBUG"):
            raise
        click.echo(f"error: {error}", err=True)
    sys.exit(EXIT_FAILURE)
