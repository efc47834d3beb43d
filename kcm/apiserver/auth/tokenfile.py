"""The static token file. Each line is `token,user,uid,"group1,group2"`. It is read once.

Source: staging/src/k8s.io/apiserver/pkg/authentication/token/tokenfile, Kubernetes 1.33.
"""

from __future__ import annotations

import csv
from pathlib import Path

from kcm import errors
from kcm.apiserver.auth.attributes import User


def read(path: Path) -> dict[str, User]:
    """Returns the users of a token file by their tokens.

    Raises ConfigurationError. The message names the file and the line, but never a token.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise errors.ConfigurationError(f"--token-auth-file {path}: {why}") from None
    users: dict[str, User] = {}
    reader = csv.reader(text.splitlines(), strict=True, skipinitialspace=True)
    try:
        for row in reader:
            if not row or row[0].startswith("#"):
                continue
            token, user = _entry(row)
            if token in users:
                raise ValueError("the token is there already, on an earlier line")
            users[token] = user
    except (csv.Error, ValueError) as error:
        where = f"--token-auth-file {path}, line {reader.line_num}"
        raise errors.ConfigurationError(f"{where}: {error}") from None
    return users


def _entry(row: list[str]) -> tuple[str, User]:
    if len(row) < 3:
        raise ValueError(f"at least 3 columns are needed (token, user, uid), found {len(row)}")
    if len(row) > 4:
        raise ValueError('at most 4 columns are allowed: write several groups as "group1,group2"')
    token, name, uid = (column.strip() for column in row[:3])
    if not token or not name:
        raise ValueError(f"the {'user name' if token else 'token'} is empty")
    if any(char.isspace() for char in token):
        raise ValueError("the token has a space in it")
    groups = (group.strip() for group in (row[3] if len(row) > 3 else "").split(","))
    return token, User(name, uid, tuple(group for group in groups if group))
