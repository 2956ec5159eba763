"""Defines the errors of the store, and of stored responses, conversations and items."""

from typing import ClassVar

from ouzel.errors import InvalidRequest, OuzelError, TryLater

_MAX_SHOWN = 100


class ResponseNotFound(InvalidRequest):
    """No such response is stored for this API key."""

    status = 404
    noun: ClassVar[str] = "Response"

    def __init__(self, response_id: str, *, param: str | None = None) -> None:
        super().__init__(f"{self.noun} with id '{_shortened(response_id)}' not found.", param=param)
        self.response_id = response_id


class PreviousResponseNotFound(ResponseNotFound):
    """The previous response of a new one is not stored for this API key."""

    code = "previous_response_not_found"
    noun = "Previous response"


class ConversationNotFound(InvalidRequest):
    """No such conversation is stored for this API key."""

    status = 404

    def __init__(self, conversation_id: str, *, param: str | None = "conversation_id") -> None:
        super().__init__(
            f"Conversation with id '{_shortened(conversation_id)}' not found.", param=param
        )
        self.conversation_id = conversation_id


class ChatNotFound(InvalidRequest):
    """No such chat completion is stored for this API key."""

    status = 404

    def __init__(self, chat_id: str, *, param: str | None = "completion_id") -> None:
        super().__init__(f"Chat completion with id '{_shortened(chat_id)}' not found.", param=param)
        self.chat_id = chat_id


class FileNotFound(InvalidRequest):
    """No such file is stored for this API key."""

    status = 404

    def __init__(self, file_id: str, *, param: str | None = "file_id") -> None:
        super().__init__(f"No such File object: {_shortened(file_id)}", param=param)
        self.file_id = file_id


class NamedFileNotFound(FileNotFound):
    """A message names a file that is not stored for this API key."""

    def __init__(self, file_id: str, path: str) -> None:
        InvalidRequest.__init__(
            self,
            f"must be the id of a file of yours. No such File object: {_shortened(file_id)}",
            field=path,
        )
        self.file_id = file_id


class UploadNotFound(InvalidRequest):
    """No such upload is stored for this API key."""

    status = 404

    def __init__(self, upload_id: str) -> None:
        super().__init__(f"No such Upload object: {_shortened(upload_id)}", param="upload_id")


class UploadEnded(InvalidRequest):
    """The upload takes no more parts."""

    def __init__(self, upload_id: str, status: str) -> None:
        super().__init__(
            f"The upload '{_shortened(upload_id)}' must be pending: its status is {status}.",
            param="upload_id",
        )


class FilesFull(InvalidRequest):
    """All files together have reached their limit."""

    status = 413

    def __init__(self, max_bytes: int) -> None:
        super().__init__(
            f"the files of this server would have more than {max_bytes} bytes (files_max_gib): "
            "delete some first",
            param="file",
        )


class VectorStoreNotFound(InvalidRequest):
    """No such vector store is stored for this API key."""

    status = 404

    def __init__(self, store_id: str, *, param: str | None = "vector_store_id") -> None:
        super().__init__(f"Vector store with id '{_shortened(store_id)}' not found.", param=param)
        self.store_id = store_id


class VectorStoreExpired(InvalidRequest):
    """The vector store has expired, and its files are gone."""

    code = "vector_store_expired"

    def __init__(self, store_id: str, *, param: str | None = "vector_store_id") -> None:
        super().__init__(
            f"Vector store with id '{_shortened(store_id)}' has expired: nobody used it for the "
            "days of expires_after.",
            param=param,
        )


class VectorStoreFull(InvalidRequest):
    """The vector store would have too many files."""

    def __init__(self, max_files: int, num_files: int) -> None:
        super().__init__(
            f"a vector store must have <= {max_files} files, this one would have {num_files}"
        )


class VectorStoresFull(InvalidRequest):
    """Vector stores have reached the limit of their bytes."""

    status = 413

    def __init__(self, owner: str, max_bytes: int, option: str) -> None:
        super().__init__(
            f"the vector stores of {owner} would have more than {max_bytes} bytes of texts and "
            f"vectors ({option}): delete some first",
            param="file_ids",
        )


class VectorFileNotFound(InvalidRequest):
    """The vector store has no such file."""

    status = 404

    def __init__(self, file_id: str, *, param: str | None = "file_id") -> None:
        super().__init__(
            f"No file found with id '{_shortened(file_id)}' in vector store.", param=param
        )


class FileBatchNotFound(InvalidRequest):
    """The vector store has no such batch of files."""

    status = 404

    def __init__(self, batch_id: str) -> None:
        super().__init__(
            f"File batch with id '{_shortened(batch_id)}' not found.", param="batch_id"
        )


class ItemNotFound(InvalidRequest):
    """The requested list has no such item."""

    status = 404

    def __init__(self, item_id: str, *, param: str | None = None) -> None:
        super().__init__(f"Item with id '{_shortened(item_id)}' not found.", param=param)
        self.item_id = item_id


class HistoryLost(InvalidRequest):
    """The response is stored, but a part of its history was deleted."""

    code = "previous_response_not_found"

    def __init__(
        self, response_id: str, lost_id: str, *, param: str | None = "previous_response_id"
    ) -> None:
        super().__init__(
            f"Response with id '{response_id}' cannot be continued: it continues '{lost_id}', "
            f"which was deleted.",
            param=param,
        )
        self.response_id = response_id
        self.lost_id = lost_id


class ConversationLocked(InvalidRequest):
    """Another response in progress holds the conversation."""

    code = "conversation_locked"

    def __init__(self, conversation_id: str, *, param: str | None = "conversation") -> None:
        super().__init__(
            f"Another response is being made in the conversation '{conversation_id}'. "
            f"Please retry in a few seconds.",
            param=param,
        )
        self.conversation_id = conversation_id


class StoreUnavailable(TryLater):
    """The database cannot serve the request now."""

    status = 503
    type = "service_unavailable_error"
    code = "store_unavailable"


class StoreOpenError(OuzelError):
    """The configured store cannot be used; the message says why."""


def _shortened(client_id: str) -> str:
    """Shortens an id that a client sent, which may be any text."""
    return client_id if len(client_id) <= _MAX_SHOWN else f"{client_id[:_MAX_SHOWN]}…"
