"""Every option, once: the flag, the environment variable and the YAML key all come from the field's name.

`max_num_seqs` is `--max-num-seqs`, `OUZEL_MAX_NUM_SEQS` and `max_num_seqs:`. A flag beats the environment,
which beats the file. These records say what the user asked for; what the engine decided is `EngineInfo`.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Weights = Literal["int8", "int4", "bf16", "f32"]
Precision = Literal["auto", "bf16", "f16", "f32"]
Profile = Literal["openai", "lmi", "ovms"]
KvCacheDtype = Literal["auto", "u8", "bf16", "f16", "f32"]
API_KEY_PATTERN = r"^[!-~]+$"  # fits into a header


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What to serve."""

    model: Annotated[
        str, Meta(description="A local directory or a Hugging Face repo id; empty serves the bundled demo model.")
    ] = ""
    served_model_name: Annotated[
        tuple[str, ...],
        Meta(description="A `model` value that clients may send (repeatable); the first is the one in answers."),
    ] = ()
    weights: Annotated[Weights, Meta(description="Compression of safetensors weights while reading.")] = "int8"
    max_model_len: (
        Annotated[int, Meta(ge=1, description="Prompt plus completion limit in tokens; default: the model's own.")]
        | None
    ) = None
    chat_template: Annotated[str, Meta(description="A Jinja file that replaces the model's chat template.")] = ""
    tool_parser: Annotated[
        str,
        Meta(
            description="How the model writes tool calls: auto (by its chat template, or else its response_template), "
            "none, response_template, or a family's name."
        ),
    ] = "auto"
    reasoning_parser: Annotated[
        str, Meta(description="How the model marks its reasoning: auto, none, response_template, or a family's name.")
    ] = "auto"
    trust_request_chat_template: Annotated[
        bool, Meta(description="Render chats with a request's own chat_template, a program that may cost much.")
    ] = False
    enable_tool_guided_generation: Annotated[
        bool,
        Meta(description="Arguments of every call obey their schema, as for strict functions; a request may differ."),
    ] = False
    reasoning_field: Annotated[
        Literal["both", "reasoning_content", "reasoning"],
        Meta(description="Under which name a chat's answer shows the reasoning; clients differ."),
    ] = "both"
    cache_dir: Annotated[
        str, Meta(description="Where compressed weights are kept; default: $XDG_CACHE_HOME/ouzel or ~/.cache/ouzel.")
    ] = ""


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How to run it."""

    device: Annotated[str, Meta(description="OpenVINO device: CPU, GPU, GPU.1.")] = "CPU"
    precision: Annotated[Precision, Meta(description="Of inference; auto is bf16 where the CPU has it, else f32.")] = (
        "auto"
    )
    kv_cache_dtype: Annotated[
        KvCacheDtype, Meta(description="Of the KV cache; auto is the device's default (u8 on x86).")
    ] = "auto"
    kv_cache_gib: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=2**20,
                description="KV cache size; default: max_num_seqs full contexts, at most 40 % of the free memory.",
            ),
        ]
        | None
    ) = None
    max_num_seqs: Annotated[int, Meta(ge=1, le=4096, description="Sequences in one batch.")] = 128
    max_num_batched_tokens: Annotated[
        int, Meta(ge=16, description="Tokens in one step; prompts beyond it are prefilled in chunks.")
    ] = 512
    prefix_caching: Annotated[bool, Meta(description="Reuse of full KV blocks between requests.")] = True
    grammar_timeout_s: Annotated[
        float, Meta(gt=0, le=600, description="How long a response format or a tool's schema may take to be compiled.")
    ] = 5.0
    num_threads: Annotated[int, Meta(ge=0, description="CPU threads of the model; 0 leaves it to the runtime.")] = 0
    engine_process: Annotated[bool, Meta(description="Run the engine in a child process (else in a thread).")] = True


class LimitsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the door lets in."""

    max_queued_requests: Annotated[
        int, Meta(ge=0, description="Requests that may wait beyond max_num_seqs running ones; one more is a 429.")
    ] = 256
    max_body_bytes: Annotated[int, Meta(ge=1024, description="Longest accepted request body.")] = 16 * 2**20
    body_timeout_s: Annotated[
        float, Meta(gt=0, le=86400, description="How long a request body may take to arrive.")
    ] = 30.0
    write_timeout_s: Annotated[
        float, Meta(gt=0, le=86400, description="How long a client may not read its answer until it counts as gone.")
    ] = 60.0
    max_websockets: Annotated[
        int, Meta(ge=0, description="WebSockets that may be open at a time; one more is a 429.")
    ] = 1024
    websocket_lifetime_s: Annotated[
        float, Meta(gt=0, le=86400, description="How long a WebSocket takes requests; what it runs then is finished.")
    ] = 3600.0
    max_tokens_limit: (
        Annotated[
            int,
            Meta(ge=1, description="Most tokens that a request may ask for, and what it gets when it does not say."),
        ]
        | None
    ) = None
    max_choices: Annotated[int, Meta(ge=1, le=128, description="Largest n.")] = 128
    max_prompts: Annotated[
        int, Meta(ge=1, description="Most prompts in one completions request, each of its n choices counting as one.")
    ] = 256
    max_logprobs: Annotated[int, Meta(ge=0, description="Most alternatives per token.")] = 20
    drain_timeout_s: Annotated[
        float, Meta(ge=0, le=86400, description="How long SIGTERM waits for running requests.")
    ] = 30.0


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where it listens and how it speaks."""

    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = 8000
    uds: Annotated[str, Meta(description="A unix socket to listen on, instead of host and port.")] = ""
    ssl_certfile: Annotated[
        str, Meta(description="A PEM certificate (and what leads to its root); with it, HTTPS is spoken.")
    ] = ""
    ssl_keyfile: Annotated[str, Meta(description="Its private key; default: in the certificate's file.")] = ""
    ssl_ca_certs: Annotated[str, Meta(description="PEM certificates of who may issue those of clients.")] = ""
    ssl_client_auth: Annotated[
        Literal["none", "optional", "required"], Meta(description="Whether clients show a certificate.")
    ] = "none"
    profile: Annotated[
        Profile,
        Meta(
            description="lmi: /v1/chat/completions speaks as LMI does, and LMI's own options are read at the start. "
            "ovms: errors, best_of and some defaults are those of OpenVINO Model Server, and its flags are read."
        ),
    ] = "openai"
    responses_done: Annotated[
        bool,
        Meta(description="Streams of /v1/responses end with `data: [DONE]`, which OpenVINO Model Server sends there."),
    ] = True
    lmi_default_max_tokens: Annotated[
        int, Meta(ge=1, description="Limit of generated tokens where a request in one of LMI's schemas gives none.")
    ] = 30
    lmi_tgi_compat: Annotated[
        bool, Meta(description="LMI's standard schema is answered as text-generation-inference does.")
    ] = False
    lmi_strict_logprobs: Annotated[
        bool, Meta(description="Logprobs in LMI's chat streams in the form that LMI gives them, mistakes included.")
    ] = False
    api_key: Annotated[
        tuple[Annotated[str, Meta(pattern=API_KEY_PATTERN)], ...],
        Meta(
            description="A key that clients may send (repeatable); without any, everybody may ask. Other users of the "
            "machine can read flags: prefer the environment or --api-key-file.",
            extra_json_schema={"writeOnly": True},
        ),
    ] = ()
    api_key_file: Annotated[
        str,
        Meta(description="A file with further keys, one per line; empty lines and # lines are skipped."),
    ] = ""
    allowed_origins: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(\*|null|[a-z][a-z0-9+.-]*://[^/,\s]+)$")], ...],
        Meta(
            description="An origin whose pages may call from a browser (repeatable), like https://chat.example.org, or "
            "* for all; default: none, and no CORS headers."
        ),
    ] = ()
    allowed_methods: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(\*|[A-Z]+)$")], ...],
        Meta(description="An HTTP method those pages may use (repeatable), or * for all."),
    ] = ("*",)
    allowed_headers: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")], ...],
        Meta(description="A request header those pages may send (repeatable), or * for all."),
    ] = ("*",)
    allow_credentials: Annotated[bool, Meta(description="Let those pages send cookies and client certificates.")] = (
        False
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Meta(description="Least level logged.")] = "info"


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of responses and conversations."""

    store: Annotated[
        bool, Meta(description="Keep responses (unless a request says store: false) and conversations.")
    ] = True
    store_url: Annotated[
        str,
        Meta(
            description="Where: sqlite:///PATH, or postgresql://USER:PASSWORD@HOST/NAME, which several servers may "
            "share; default: responses.sqlite3 in data_dir. Other users of the machine can read flags: prefer the "
            "environment for a password.",
            extra_json_schema={"writeOnly": True},
        ),
    ] = ""
    data_dir: Annotated[
        str, Meta(description="Where the server keeps its data; default: $XDG_DATA_HOME/ouzel or ~/.local/share/ouzel.")
    ] = ""
    store_max_age_days: Annotated[
        float, Meta(gt=0, le=36500, description="What nobody has used for longer is deleted.")
    ] = 30.0
    store_max_gib: Annotated[
        float, Meta(gt=0, le=2**20, description="Above it, what was used least recently is deleted.")
    ] = 1.0
