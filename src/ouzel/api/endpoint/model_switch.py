"""Sends each request of an operation to the endpoint of the model that it names.

If one model is served and no other is being loaded, its endpoint reads the body and checks the
name.
"""

import asyncio
import inspect
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

import msgspec
from starlette.routing import request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.on_demand import OnDemand, find_name, hold_chosen
from ouzel.api.endpoint.operation import Endpoint, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.framing import SSE
from ouzel.api.http.request_admission import cancel_on_disconnect
from ouzel.api.http.send import send_json
from ouzel.api.http.waiting_stream import WaitingStream
from ouzel.errors import Overloaded
from ouzel.worker_threads import LONG_BODY_BYTES


class ModelSwitch:
    """Implements an operation as an ASGI app, with one endpoint per model."""

    def __init__(
        self, catalogue: Catalogue, operation: Operation, make: Callable[[Services], Endpoint]
    ) -> None:
        """`make` is the operation's function that makes an endpoint."""
        self._catalogue = catalogue
        self._operation = operation
        self._make = make
        self._choose = operation.choice
        self._takes_body = operation.method == "post"
        shared = catalogue.shared
        self._bodies = shared.bodies if operation.form_body is None else shared.forms
        self._apps: dict[Services, ASGIApp] = {}
        catalogue.add_removal_listener(self._forget)
        for services in catalogue:
            self._app(services)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        only, on_demand = self._catalogue.only, self._catalogue.on_demand
        if on_demand is not None:
            await self._call_on_demand(on_demand, scope, receive, send)
        elif only is not None:
            await self._app(only)(scope, receive, send)
        elif not self._takes_body:
            await self._app(self._choose(self._catalogue, scope, b""))(scope, receive, send)
        else:
            await self._switch_by_body(scope, receive, send)

    async def _call_on_demand(
        self, on_demand: OnDemand, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Calls the endpoint of the request's model, which is loaded first if necessary.

        Raises ModelNotFound, the errors of `BodyReader.read` and the errors of `Residents.use`.
        """
        with self._bodies.share() as share:
            body = await self._bodies.read(scope, receive, share) if self._takes_body else b""
            choose = partial(self._choose_off_loop, scope, body)
            name = await find_name(on_demand, choose)
            is_in_memory = on_demand.residents.is_in_memory(name)
            answer_away = self._operation.answer_away
            if not is_in_memory and answer_away is not None:
                answer = answer_away(on_demand, name, body)
                if answer is not None:
                    await send_json(msgspec.json.encode(answer), send)
                    return
            async with AsyncExitStack() as held:
                entering = held.enter_async_context(hold_chosen(on_demand, choose, name))
                if is_in_memory:
                    services, model = await entering
                else:
                    waiting = self._begin_waiting(scope, body, send)
                    send = waiting.send
                    try:
                        async with cancel_on_disconnect(receive):
                            services, model = await entering
                    finally:
                        await waiting.stop()
                if model is not None and self._operation.apply_keep_alive is not None:
                    self._operation.apply_keep_alive(model, body)
                await self._app(services)(scope, receive, send)

    def _begin_waiting(self, scope: Scope, body: bytes, send: Send) -> WaitingStream:
        """Begins the comments of a request that waits for its model, if it asks for events."""
        framing = self._operation.framing_with_comments
        if framing is None or not self._operation.wants_stream(body):
            return WaitingStream(SSE, send, 0.0)
        # frames errors until the endpoint sets another framing
        get_exchange(scope).framing = framing
        return WaitingStream(framing, send, self._catalogue.shared.limits.stream_keepalive_s)

    async def _choose_off_loop(self, scope: Scope, body: bytes) -> Services:
        if len(body) > LONG_BODY_BYTES:
            return await asyncio.to_thread(self._choose, self._catalogue, scope, body)
        return self._choose(self._catalogue, scope, body)

    async def _switch_by_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reads the body, and calls the endpoint of its model.

        Raises ModelNotFound, and the errors of `BodyReader.read`.
        """
        first = self._check_places()
        with self._bodies.share() as share:
            try:
                body = await self._bodies.read(scope, receive, share)
            except Overloaded:
                first.metrics.request_refused()
                raise
            services = await self._choose_off_loop(scope, body)
            await self._app(services)(scope, receive, send)

    def _check_places(self) -> Services:
        """Returns the first model.

        Raises Overloaded if all models are full, before the body is read.
        """
        served = list(self._catalogue) or [self._catalogue.first]
        if not any(each.model.engine.num_free for each in served):
            served[0].admission.take_place().close()
        return served[0]

    def _app(self, services: Services) -> ASGIApp:
        app = self._apps.get(services)
        if app is None:
            app = _make_app(self._make(services))
            # false for a model that was removed while the body was read
            if services in self._catalogue:
                self._apps[services] = app
        return app

    def _forget(self, services: Services) -> None:
        self._apps.pop(services, None)


def _make_app(endpoint: Endpoint) -> ASGIApp:
    """Turns an endpoint into an ASGI app. Endpoints may be functions of a request."""
    if inspect.isfunction(endpoint) or inspect.ismethod(endpoint):
        return request_response(endpoint)
    return endpoint  # type: ignore[return-value]
