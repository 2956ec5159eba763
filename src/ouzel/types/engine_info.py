"""Defines the reports of an engine: facts when it is ready, counters after each step."""

import msgspec

from ouzel.pooling import Task, VectorForm


class AudioShape(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of the windows of sound that a speech model reads."""

    num_mel_bins: int
    num_frames: int  # frames of a window: 3000 of 10 ms
    num_encoder_frames: int  # frames that the decoder attends to: 1500 of 20 ms
    num_slots: int = 1  # windows that sequences can attend to at the same time
    can_align: bool = False  # the model has alignment heads: EngineRequest.num_aligned_frames


class VoiceShape(msgspec.Struct, frozen=True, kw_only=True):
    """The sound that a model makes of a text."""

    sample_rate: int  # samples in a second
    voices: tuple[str, ...]  # names, sorted


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions of the engine, unlike the configuration, which has the user's wishes."""

    backend: str
    model_type: str
    device: str
    # as in --weights (int8; int4,head=int4), ir, or the format of a quantised checkpoint
    weights: str
    precision: str  # inference precision: bf16, f16 or f32
    kv_cache_dtype: str
    vocab_size: int
    max_model_len: int  # prompt plus completion, in tokens
    block_size: int  # tokens per KV block
    num_blocks: int
    max_num_seqs: int
    max_num_batched_tokens: int
    load_s: float
    num_state_slots: int = 0  # slots for states of recurrent layers; 0: the model has none
    kernels: str = ""  # instructions of Ouzel's own kernels; empty: the runtime has all products
    has_grammars: bool = False  # the engine can make an output follow a grammar
    has_beam_search: bool = True
    has_prompt_lookup: bool = False  # proposes tokens from earlier texts
    # proposes tokens of a draft model, an EAGLE-3 head, an assistant or a prediction layer
    has_drafts: bool = False
    has_vision: bool = False  # reads images
    has_hearing: bool = False  # reads sounds, whose features stand for tokens of the prompt
    audio: AudioShape | None = None  # the sound that a speech model reads; None: it reads none
    speech: VoiceShape | None = None  # the sound that the model makes; None: it makes none
    # the tokens of an image attend to each other, so an image is never cut
    attends_to_whole_images: bool = False
    # all tokens of a prompt attend to each other, so a prompt is never cut
    attends_to_whole_prompts: bool = False
    # a token's row has the same bits in every step
    is_deterministic: bool = False
    # rows of prompts and other rows are computed apart, which makes it so (`engine.row_kinds`)
    separates_rows: bool = False
    # a model without a KV cache is a decoder: its last token has read all others
    is_causal: bool = False
    task: Task = "generate"
    vector_size: int = 0  # values of a vector; 0: the model makes no vectors
    forms: tuple[VectorForm, ...] = ("text",)  # forms of vectors; the first is the default
    token_vector_size: int = 0  # values of the vector of a token; 0: tokens have no vectors
    num_tasks: int = 0  # adapters of the checkpoint that a text can choose, one for each task
    max_texts: int = 1  # maximum of texts in a pooling request
    max_loras: int = 0  # adapters that can be loaded at a time; 0: none
    max_lora_rank: int = 0
    adapters: tuple[str, ...] = ()  # adapters that were loaded at the start
    # sends an output without tokens for each accepted request; other requests are refused
    confirms_requests: bool = False
    # Equal for engines whose cached rows mean the same; usable as a file name.
    cache_identity: str = ""

    @property
    def has_encoder(self) -> bool:
        """Tells whether features of images or sounds stand for tokens of prompts."""
        return self.has_vision or self.has_hearing

    @property
    def num_reserved_tokens(self) -> int:
        """Counts the tokens behind every prompt for which the engine keeps room in a KV cache."""
        return 1 if self.num_blocks else 0


class EngineStats(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A snapshot after a step; counters run from the engine's start."""

    num_running: int  # running sequences
    num_waiting: int
    num_used_blocks: int  # blocks of sequences; cached unreferenced blocks count as free
    num_blocks: int
    num_prefix_query_tokens: int  # counter
    num_prefix_hit_tokens: int  # counter
    num_preemptions: int  # counter
    num_used_state_slots: int = 0  # includes kept states
    num_images_encoded: int = 0  # counter
    # counter: images whose features or cached tokens were found
    num_image_hits: int = 0
    num_drafts: int = 0  # counter: proposals, one for each sequence and step
    num_draft_tokens: int = 0  # counter: proposed tokens
    num_accepted_tokens: int = 0  # counter: accepted tokens
    encoding_s: float = 0.0  # counter: time of the vision encoder
    num_store_bytes: int = 0  # bytes of records in the prefix cache directory
    num_store_written: int = 0  # counter: records (blocks and states); so are the three below
    num_store_loaded: int = 0
    num_store_damaged: int = 0  # deleted when they were to be loaded
    # not written: their block was evicted before, or too many waited
    num_store_skipped: int = 0
    running_adapters: tuple[str, ...] = ()  # adapters of the running sequences
    waiting_adapters: tuple[str, ...] = ()  # adapters of the waiting sequences
