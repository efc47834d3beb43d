"""A server of CRI v1 that answers as a test says, for what a real one does not do on order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from kcm.kubelet.runtime.cri.channel import RuntimeChannel
from kcm.kubelet.runtime.cri.messages import calls

Answer = Callable[[Any, grpc.ServicerContext], Any]
"""Takes a request; returns the fields of the response, or ends the call by the context.

For a call with many responses it is a generator of the fields of each.
"""


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc has no types
    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = answers

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        name = details.method.rpartition("/")[2]
        answer, call = self._answers.get(name), calls()[name]
        if answer is None or details.method != call.path:
            return None

        def handle(request: Any, context: grpc.ServicerContext) -> Any:
            return call.response(**(answer(request, context) or {}))

        def handle_stream(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            for fields in answer(request, context):
                yield call.response(**fields)

        if call.is_stream:
            return grpc.unary_stream_rpc_method_handler(
                handle_stream, call.request.FromString, call.response.SerializeToString
            )
        return grpc.unary_unary_rpc_method_handler(
            handle, call.request.FromString, call.response.SerializeToString
        )


@contextmanager
def serve(folder: Path, answers: Mapping[str, Answer]) -> Iterator[RuntimeChannel]:
    """Yields a channel to a server with these answers, by the names of the calls."""
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool, handlers=[_Handler(answers)])
        endpoint = f"unix://{folder}/cri.sock"
        server.add_insecure_port(endpoint)
        server.start()
        channel = RuntimeChannel(endpoint)
        try:
            yield channel
        finally:
            channel.close()
            server.stop(None).wait()
