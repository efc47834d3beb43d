"""`python -m workers.managerflags FLAGS`: the manager's flags as environment variables.

For `kcm up`, whose workers, beat and manager all need the same options: it
prints a JSON object, or the manager's help where the flags ask for it. Exit
code 1 and one line on standard error for a flag that is wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from kcm import errors
from kcm.component.options import ManagerOptions
from kcm.manager.command import parse_flags


def environment(argv: Sequence[str]) -> dict[str, str]:
    """The variables that say what the flags say.

    Raises: ConfigurationError, click.ClickException; click's Exit for --help.
    """
    return ManagerOptions.load(parse_flags(argv)).to_environment()


def main() -> int:
    """Print the environment; returns the exit code."""
    try:
        found = environment(sys.argv[1:])
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        print(error.format_message(), file=sys.stderr)  # noqa: T201 - this is its output
        return 1
    except errors.ConfigurationError as error:
        print(error.message, file=sys.stderr)  # noqa: T201 - this is its output
        return 1
    print(json.dumps(found))  # noqa: T201 - this is its output
    return 0


if __name__ == "__main__":
    sys.exit(main())
