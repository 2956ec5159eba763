"""Holds the facts of a model that `ouzel inspect` shows, without loading the model."""

from dataclasses import dataclass
from typing import Literal

from ouzel.backends.openvino.speech_loader import InspectedSound
from ouzel.pooling import Task, VectorForm


@dataclass(frozen=True, kw_only=True)
class InspectedDraft:
    """The facts of the model, assistant or head that `draft_model` names; sizes are in bytes."""

    kind: Literal["draft model", "assistant", "EAGLE-3 head"]
    weights: tuple[tuple[str, int], ...]  # encoding and size, the largest first
    num_parameters: int  # 0: unknown, the draft is an IR
    kv_token_bytes: int = 0  # 0: the draft has no cache of its own

    @property
    def weight_bytes(self) -> int:
        return sum(size for _, size in self.weights)

    @property
    def is_part_of_model(self) -> bool:
        """Tells whether the weights are loaded with the model's, before its cache is planned."""
        return self.kind != "draft model"


@dataclass(frozen=True, kw_only=True)
class InspectedSpeech:
    """The facts of a model that reads texts aloud."""

    num_voices: int
    sample_rate: int  # samples in a second
    working_bytes: int  # memory for the longest piece of a text, about


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The facts of a model directory for `ouzel inspect`; sizes are in bytes."""

    model_type: str
    text_model_type: str  # the language model's; model_type unless there are other modes
    weights: tuple[tuple[str, int], ...]  # encoding and size, the largest first
    are_weights_calibrated: bool
    stored: str  # the treatment of quantised matrices; empty if the checkpoint has none
    num_parameters: int  # 0: unknown, the model is an IR
    precision: str
    kernels: str  # the kernels of packed matrices; empty if the model has none
    is_deterministic: bool  # a row gets the same bits beside any other rows
    kv_cache_dtype: str
    kv_cache_is_open: bool  # the first load chooses another type if u8 harms this model
    kv_cache_reason: str  # why the cache is f16 or u8; empty if the user has named a type
    kv_token_bytes: int
    num_kv_tokens: int  # tokens that the cache would hold
    max_positions: int  # tokens, the model's own limit
    default_positions: int  # tokens of one request, unless the user names another context
    max_model_len: int  # tokens of one request, as the model would be served
    max_num_seqs: int
    num_state_slots: int  # 0: the model has no recurrent layers
    state_slot_bytes: int
    task: Task
    # Values of a vector, or scores of a pair. 0: the model generates, or scores by the logits of
    # two tokens.
    vector_size: int
    forms: tuple[VectorForm, ...] = ("text",)  # forms of vectors that the model makes
    attends_to_whole_prompts: bool = False  # tokens of a prompt see later ones
    draft: InspectedDraft | None = None
    sound: InspectedSound | None = None  # None: the model reads no sound
    speech: InspectedSpeech | None = None  # None: the model does not speak

    @property
    def weight_bytes(self) -> int:
        return sum(size for _, size in self.weights)

    @property
    def kv_cache_bytes(self) -> int:
        return self.kv_token_bytes * self.num_kv_tokens

    @property
    def draft_cache_bytes(self) -> int:
        """Returns the size of the draft's own cache, which holds as many tokens as the model's."""
        return 0 if self.draft is None else self.draft.kv_token_bytes * self.num_kv_tokens
