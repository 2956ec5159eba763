"""Lists all operations of the API. Routes, the OpenAPI document and tests derive from the table."""

from collections.abc import Iterable

from starlette.routing import BaseRoute

from ouzel.api.anthropic import count_tokens, message_batches, messages
from ouzel.api.anthropic import models as anthropic_models
from ouzel.api.batches import endpoints as batches
from ouzel.api.cohere import embed as cohere_embed
from ouzel.api.containers import endpoints as containers
from ouzel.api.containers import files as container_files
from ouzel.api.conversations import items as conversation_items
from ouzel.api.conversations import stored as conversations
from ouzel.api.document.endpoint import OpenApi
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.endpoint.model_switch import ModelSwitch
from ouzel.api.endpoint.operation import PREFIXES, Endpoint, Operation
from ouzel.api.files import stored as files
from ouzel.api.files import uploads
from ouzel.api.http.method_router import MethodRoute, SocketRoute
from ouzel.api.http.paths import Paths
from ouzel.api.lmi import invocations, ping, sagemaker
from ouzel.api.ollama import chat as ollama_chat
from ouzel.api.ollama import delete as ollama_delete
from ouzel.api.ollama import embed as ollama_embed
from ouzel.api.ollama import generate as ollama_generate
from ouzel.api.ollama import management as ollama_management
from ouzel.api.ollama import models as ollama_models
from ouzel.api.ollama import pull as ollama_pull
from ouzel.api.openai import (
    about,
    completions,
    embeddings,
    health,
    hosted_chat,
    model_loading,
    model_pulls,
    models,
    pooling,
    render,
    stored_chats,
    tokenize,
)
from ouzel.api.ovms import chat as ovms_chat
from ouzel.api.ovms import completions as ovms_completions
from ouzel.api.ovms import speech as ovms_speech
from ouzel.api.ovms import spoken_text as ovms_spoken_text
from ouzel.api.ovms import status as ovms_status
from ouzel.api.ovms import vectors as ovms_vectors
from ouzel.api.ranking import rerank, score
from ouzel.api.realtime import endpoint as realtime
from ouzel.api.responses import compact, count, create, prompts, retrieve
from ouzel.api.responses import stored as responses
from ouzel.api.responses.socket import endpoint as socket
from ouzel.api.site import playground
from ouzel.api.site.endpoint import Site
from ouzel.api.site.index import Index
from ouzel.api.speaking import speech, voices
from ouzel.api.speech import transcriptions
from ouzel.api.tei import embed as tei_embed
from ouzel.api.tei import info as tei_info
from ouzel.api.tei import rerank as tei_rerank
from ouzel.api.tei import root as tei_root
from ouzel.api.tei import similarity as tei_similarity
from ouzel.api.vector_stores import files as vector_store_files
from ouzel.api.vector_stores import stores as vector_stores
from ouzel.config import ServerConfig

OPERATIONS: tuple[Operation, ...] = (
    *hosted_chat.OPERATIONS,
    *completions.OPERATIONS,
    *create.OPERATIONS,
    *socket.OPERATIONS,
    *retrieve.OPERATIONS,
    *responses.OPERATIONS,
    *count.OPERATIONS,
    *compact.OPERATIONS,
    *prompts.OPERATIONS,
    *conversations.OPERATIONS,
    *conversation_items.OPERATIONS,
    *files.OPERATIONS,
    *uploads.OPERATIONS,
    *containers.OPERATIONS,
    *container_files.OPERATIONS,
    *batches.OPERATIONS,
    *embeddings.OPERATIONS,
    *pooling.OPERATIONS,
    *rerank.OPERATIONS,
    *score.OPERATIONS,
    *cohere_embed.OPERATIONS,
    *tei_embed.OPERATIONS,
    *tei_similarity.OPERATIONS,
    *tei_rerank.OPERATIONS,
    *tei_root.OPERATIONS,
    *tei_info.OPERATIONS,
    *transcriptions.OPERATIONS,
    *speech.OPERATIONS,
    *voices.OPERATIONS,
    *realtime.OPERATIONS,
    *tokenize.OPERATIONS,
    *render.OPERATIONS,
    *stored_chats.OPERATIONS,  # behind the paths without an id
    *models.OPERATIONS,
    *vector_stores.OPERATIONS,
    *vector_store_files.OPERATIONS,
    *model_loading.OPERATIONS,
    *model_pulls.OPERATIONS,
    *health.OPERATIONS,
    *about.OPERATIONS,
    *invocations.OPERATIONS,
    *sagemaker.OPERATIONS,
    *ping.OPERATIONS,
    *messages.OPERATIONS,
    *count_tokens.OPERATIONS,
    *message_batches.OPERATIONS,
    *anthropic_models.OPERATIONS,
    *ovms_chat.OPERATIONS,
    *ovms_completions.OPERATIONS,
    *ovms_vectors.OPERATIONS,
    *ovms_speech.OPERATIONS,
    *ovms_spoken_text.OPERATIONS,
    *ovms_status.OPERATIONS,
    *ollama_chat.OPERATIONS,
    *ollama_generate.OPERATIONS,
    *ollama_embed.OPERATIONS,
    *ollama_models.OPERATIONS,
    *ollama_pull.OPERATIONS,
    *ollama_delete.OPERATIONS,
    *ollama_management.OPERATIONS,
    Operation(
        method="get",
        path="/",
        summary="Describes this server and how to reach it; a page for browsers.",
        overall=lambda catalogue: Site(catalogue, DOCUMENTED).index,
        answers=(Index,),
        has_page=True,
    ),
    Operation(
        method="get",
        path="/about",
        is_documented=False,
        overall=lambda catalogue: Site(catalogue, DOCUMENTED).about,
    ),
    Operation(
        method="get",
        path="/v1/openapi.json",
        prefixes=("", *PREFIXES),
        is_documented=False,
        overall=lambda catalogue: _document(catalogue).document,
    ),
    *playground.OPERATIONS,
)
DOCUMENTED: tuple[Operation, ...] = tuple(
    operation for operation in OPERATIONS if operation.is_documented
)


def build_routes(
    operations: Iterable[Operation], catalogue: Catalogue, changes: ModelChanges | None = None
) -> list[BaseRoute]:
    """Builds the routes of the operations.

    Routes that need a header or the server's profile come before routes of the same path without.
    """
    config = catalogue.shared.config
    return [
        route
        for operation in _own(operations, config)
        for route in _routes(operation, catalogue, changes)
    ]


def build_paths(operations: Iterable[Operation], server: ServerConfig) -> Paths:
    """Returns the paths of the operations, with their prefixes, for corrections and hints."""
    own = _own(operations, server)
    plain = [
        operation for operation in own if operation.is_documented and "{" not in operation.path
    ]
    return Paths(
        [(operation.method.upper(), path) for operation in own for path in operation.paths],
        prefixes=PREFIXES,
        shown_paths=[operation.path for operation in plain],
        socket_paths=[operation.path for operation in own if operation.method == "websocket"],
        root_path=server.root_path,
    )


def list_main_paths(operations: Iterable[Operation], catalogue: Catalogue) -> list[str]:
    """Returns the paths of the main endpoints of the served models, without LMI's."""
    tasks = {each.model.engine.info.task for each in catalogue}
    own = _own(operations, catalogue.shared.config)
    return [
        operation.path
        for operation in own
        if operation.is_documented and operation.words != "lmi" and tasks & operation.main_tasks
    ]


def _document(catalogue: Catalogue) -> OpenApi:
    return OpenApi(
        DOCUMENTED, root_path=catalogue.shared.config.root_path, model_names=lambda: catalogue.names
    )


def _own(operations: Iterable[Operation], server: ServerConfig) -> list[Operation]:
    own = [
        operation
        for operation in operations
        if operation.profile in (None, server.profile)
        and (operation.missing_profile is None or operation.missing_profile != server.profile)
    ]
    own = [operation for operation in own if server.playground or not operation.is_playground]
    return sorted(own, key=lambda operation: (operation.header is None, operation.profile is None))


def _routes(
    operation: Operation, catalogue: Catalogue, changes: ModelChanges | None
) -> Iterable[BaseRoute]:
    endpoint = _endpoint(operation, catalogue, changes)
    if operation.method == "websocket":
        return [SocketRoute(path, endpoint) for path in operation.paths]
    return [
        MethodRoute(
            path,
            endpoint,
            method=operation.method.upper(),
            is_routine=operation.is_watching or operation.is_playground,
            needed_header=operation.header,
            template=playground.TEMPLATE if operation.is_playground else "",
        )
        for path in operation.paths
    ]


def _endpoint(operation: Operation, catalogue: Catalogue, changes: ModelChanges | None) -> Endpoint:
    if operation.overall is not None:
        return operation.overall(catalogue)
    if operation.changing is not None:
        assert changes is not None, operation.path
        return operation.changing(changes)
    assert operation.endpoint is not None, operation.path
    return ModelSwitch(catalogue, operation, operation.endpoint)
