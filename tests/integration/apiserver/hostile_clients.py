"""Sends one kind of hostile request from several connections until its input ends.

It is a process of its own, so that it does not share an interpreter with who measures.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter

import httpx

from tests.integration.apiserver.hostile import FLOODS


def main() -> None:
    """Sends until standard input ends, then writes how often each code was the answer."""
    url, token, name, count = sys.argv[1:]
    flood = next(one for one in FLOODS if one.name == name)
    content, ended, codes = flood.body(), threading.Event(), Counter[int]()
    headers = {"authorization": f"Bearer {token}", "content-type": flood.content_type}

    def run() -> None:
        with httpx.Client(base_url=url, headers=headers, verify=False, timeout=120) as client:
            while not ended.is_set():
                answer = client.request(flood.method, flood.path, content=content)
                codes[answer.status_code] += 1

    threads = [threading.Thread(target=run) for _ in range(int(count))]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
    sys.stdout.write(json.dumps(codes))


if __name__ == "__main__":
    main()
