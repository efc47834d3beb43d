"""Stand-ins for redis-cli and curl, where the machine that runs the tests has none.

They know only the forms that the documents use: `redis-cli -s SOCKET COMMAND ...`,
`redis-cli -s SOCKET` with commands on standard input, and `curl -s URL`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from urllib.request import urlopen

import redis


def main() -> int:
    name, *args = sys.argv[1:]
    if name == "curl":
        with urlopen(args[-1], timeout=60) as answer:
            sys.stdout.write(answer.read().decode())
        return 0
    flag, path, *command = args
    assert flag == "-s"
    execute: Callable[..., object] = redis.Redis(unix_socket_path=path).execute_command
    for words in [command] if command else map(shlex.split, sys.stdin):
        reply = execute(*words)
        print(reply)  # noqa: T201 - as redis-cli does
    return 0


if __name__ == "__main__":
    sys.exit(main())
