"""Sends one kind of hostile request from several connections until its input ends.

It is a process of its own, so that it does not share an interpreter with who measures.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx

from tests.integration.apiserver.hostile import FLOODS


def main() -> None:
    """Sends until standard input ends, then writes how often each code was the answer.

    Raises what a connection raised, so the process then ends with 1.
    """
    url, token, name, count = sys.argv[1:]
    flood = next(one for one in FLOODS if one.name == name)
    content, ended = flood.body(), Event()
    headers = {"authorization": f"Bearer {token}", "content-type": flood.content_type}

    def run(_: int) -> Counter[int]:
        codes = Counter[int]()
        with httpx.Client(base_url=url, headers=headers, verify=False, timeout=120) as client:
            while not ended.is_set():
                answer = client.request(flood.method, flood.path, content=content)
                codes[answer.status_code] += 1
        return codes

    with ThreadPoolExecutor(int(count)) as threads:
        answered = threads.map(run, range(int(count)))
        sys.stdin.read()
        ended.set()
        codes = sum(answered, Counter[int]())
    sys.stdout.write(json.dumps(codes))


if __name__ == "__main__":
    main()
