"""An operation has an endpoint for each model; the switch leads each request to that of the model it names.

Where one model is served, and no other is being loaded, it is not asked for: its endpoint reads the body, and says what
is wrong with the name.
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
    """It is an ASGI app."""

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
        catalogue.on_removal(self._forget)
        for services in catalogue:
            self._app(services)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        only = self._catalogue.only
        if only is not None:
            await self._app(only)(scope, receive, send)
        elif not self._takes_body:
            await self._app(self._choose(self._catalogue, scope, b""))(scope, receive, send)
        else:
            await self._lead_by_body(scope, receive, send)

    async def _lead_by_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises ModelNotFound, and what reading a body raises."""
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
        """Returns the first model that is served. Raises what it says where none has a place: then nothing is read."""
        served = list(self._catalogue) or [self._catalogue.first]
        if not any(each.model.engine.num_free for each in served):
            served[0].admission.take_place().close()
        return served[0]

    def _app(self, services: Services) -> ASGIApp:
        app = self._apps.get(services)
        if app is None:
            app = _app_of(self._make(services))
            if services in self._catalogue:  # else it went while the body was read
                self._apps[services] = app
        return app

    def _forget(self, services: Services) -> None:
        self._apps.pop(services, None)


def _app_of(endpoint: Endpoint) -> ASGIApp:
    """Takes functions of a request too, as routes do."""
    if inspect.isfunction(endpoint) or inspect.ismethod(endpoint):
        return request_response(endpoint)
    return endpoint  # type: ignore[return-value]  # what is no function is an app
