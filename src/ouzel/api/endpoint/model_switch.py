"""Sends each request of an operation to the endpoint of the model that it names.

If one model is served and no other is being loaded, its endpoint reads the body and checks the
name.
"""

import asyncio
import inspect
from collections.abc import Callable

from starlette.routing import request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import ModelChoice
from ouzel.api.endpoint.operation import Endpoint
from ouzel.api.endpoint.services import Services
from ouzel.errors import Overloaded
from ouzel.worker_threads import LONG_BODY_BYTES


class ModelSwitch:
    """Implements an operation as an ASGI app, with one endpoint per model."""

    def __init__(
        self,
        catalogue: Catalogue,
        make: Callable[[Services], Endpoint],
        choose: ModelChoice,
        *,
        takes_body: bool,
    ) -> None:
        self._catalogue = catalogue
        self._make = make
        self._choose = choose
        self._takes_body = takes_body
        self._apps: dict[Services, ASGIApp] = {}
        catalogue.add_removal_listener(self._forget)
        for services in catalogue:
            self._app(services)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        only = self._catalogue.only
        if only is not None:
            await self._app(only)(scope, receive, send)
        elif not self._takes_body:
            await self._app(self._choose(self._catalogue, scope, b""))(scope, receive, send)
        else:
            await self._switch_by_body(scope, receive, send)

    async def _switch_by_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reads the body, and calls the endpoint of its model.

        Raises ModelNotFound, and the errors of `BodyReader.read`.
        """
        bodies = self._catalogue.shared.bodies
        first = self._check_places()
        with bodies.share() as share:
            try:
                body = await bodies.read(scope, receive, share)
            except Overloaded:
                first.metrics.request_refused()
                raise
            if len(body) > LONG_BODY_BYTES:
                services = await asyncio.to_thread(self._choose, self._catalogue, scope, body)
            else:
                services = self._choose(self._catalogue, scope, body)
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
