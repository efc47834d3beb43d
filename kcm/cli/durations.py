"""Durations as options of commands: text such as "1m30s", parsed into seconds."""

from __future__ import annotations

import math

import click

from kcm.apimachinery.durations import parse_seconds


def parse_duration(_: click.Context, parameter: click.Parameter, text: str) -> float:
    """Returns the seconds of a duration, which may be 0. It is the callback of an option.

    Raises BadParameter.
    """
    seconds = _parse(text)
    if not 0 <= seconds < math.inf:
        raise click.BadParameter(f'must be finite and not negative, not "{text}"')
    return seconds


def parse_positive_duration(_: click.Context, parameter: click.Parameter, text: str) -> float:
    """Returns the seconds of a duration greater than 0. It is the callback of an option.

    Raises BadParameter.
    """
    seconds = _parse(text)
    if not 0 < seconds < math.inf:
        raise click.BadParameter(f'must be finite and more than 0, not "{text}"')
    return seconds


def _parse(text: str) -> float:
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
