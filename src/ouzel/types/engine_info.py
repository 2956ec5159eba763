"""The facts that an engine reports about itself: once when it is ready, and after each step."""

import msgspec

from ouzel.pooling import Task


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The engine decided this, as opposed to what the configuration asked."""

    backend: str
    model_type: str
    device: str
    weights: str  # as --weights has it (int8; int4,head=int4), ir, or the format of a quantised checkpoint that is kept
    precision: str  # of inference: bf16, f16 or f32
    kv_cache_dtype: str
    vocab_size: int
    max_model_len: int  # prompt plus completion, in tokens
    block_size: int  # tokens per KV block
    num_blocks: int
    max_num_seqs: int
    max_num_batched_tokens: int
    load_s: float
    num_state_slots: int = 0  # of recurrent layers; 0: the model has none
    has_grammars: bool = False  # it can hold an output to a grammar
    has_beam_search: bool = True
    has_prompt_lookup: bool = False  # it guesses tokens from where the text stood before
    has_drafts: bool = False  # it guesses tokens with a smaller model, or a layer of its own
    has_vision: bool = False  # it takes images
    # each token of an image attends to all of them: an image is never cut
    sees_images_whole: bool = False
    # a token's row has the same bits whatever else a step holds (`engine.row_kinds`)
    is_deterministic: bool = False
    is_causal: bool = False  # of a model without a KV cache: it is a decoder, whose last token has read all others
    task: Task = "generate"
    vector_size: int = 0  # values of a vector; 0: it makes none
    max_texts: int = 1  # of one pooling request
    max_loras: int = 0  # adapters that can be loaded at a time; 0: it takes none
    max_lora_rank: int = 0
    adapters: tuple[str, ...] = ()  # that were loaded when it was ready
    # a request that it takes gets an output without tokens first; others it refuses
    confirms_requests: bool = False
    # what is cached under another means something else; it can be a file's name
    cache_identity: str = ""


class EngineStats(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """They are a snapshot after a step; counters run since the engine started."""

    num_running: int  # sequences
    num_waiting: int
    num_used_blocks: int  # referenced by a sequence; cached but unreferenced ones count as free
    num_blocks: int
    num_prefix_query_tokens: int  # counter
    num_prefix_hit_tokens: int  # counter
    num_preemptions: int  # counter
    num_used_state_slots: int = 0  # kept states included
    num_images_encoded: int = 0  # counter
    # counter: images of requests whose features, or whose place in the cache, were there
    num_image_hits: int = 0
    num_drafts: int = 0  # counter: of steps, the sequences that had tokens proposed
    num_draft_tokens: int = 0  # counter: tokens proposed
    num_accepted_tokens: int = 0  # counter: of these, those that came
    encoding_s: float = 0.0  # counter: time that the vision encoder took
    num_store_bytes: int = 0  # of records in the prefix cache directory
    num_store_written: int = 0  # counters of records: blocks and states
    num_store_loaded: int = 0
    num_store_damaged: int = 0  # dropped when they were to be loaded
    # left out, since their block went before, or too many waited to be written
    num_store_skipped: int = 0
    running_adapters: tuple[str, ...] = ()  # of the running sequences,
    waiting_adapters: tuple[str, ...] = ()  # and of the waiting ones
