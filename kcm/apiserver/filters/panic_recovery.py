"""Panic recovery: a client gets a Status for every error, and never a trace.

Source: staging/src/k8s.io/apiserver/pkg/server/filters/wrap.go, Kubernetes 1.33. It stands for
responsewriters.ErrorNegotiated as well, with which each of upstream's handlers answers.
"""

from __future__ import annotations

from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http.sending import present
from kcm.apiserver.objects import status
from kcm.apiserver.request import Disconnected


class PanicRecovery:
    """Answers for what raises an error."""

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Returns the answer, with the Status of an error that was raised."""
        try:
            return await proceed(exchange)
        except Disconnected:
            return None  # nobody is there to be answered
        except Exception as error:  # noqa: BLE001 - no trace may leave the server
            response = status.respond_failure(error, exchange.remarks.warnings)
            return present(response, exchange.request)
