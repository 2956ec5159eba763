"""Every option is written once: its flag, environment variable, YAML key and help all come from the field.

`max_num_seqs` is `--max-num-seqs`, `OUZEL_MAX_NUM_SEQS` and `max_num_seqs:`. A flag beats the environment,
which beats the file. These records say what the user asked for; what the engine decided is `EngineInfo`.
"""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from ouzel.config.limits import LimitsConfig
from ouzel.config.media import MediaConfig
from ouzel.config.model import ModelConfig
from ouzel.config.models import ModelsConfig
from ouzel.config.observability import ObservabilityConfig
from ouzel.config.option import option
from ouzel.config.vllm import VllmConfig

__all__ = [
    "API_KEY_PATTERN",
    "EngineConfig",
    "LimitsConfig",
    "MediaConfig",
    "ModelConfig",
    "ModelsConfig",
    "ObservabilityConfig",
    "ServerConfig",
    "StoreConfig",
    "VllmConfig",
]

Precision = Literal["auto", "bf16", "f16", "f32", "int8"]
Profile = Literal["openai", "lmi", "ovms"]
KvCacheDtype = Literal["auto", "u8", "bf16", "f16", "f32"]
API_KEY_PATTERN = r"^[!-~]+$"  # fits into a header


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Engine"

    device: Annotated[str, option("OpenVINO device: CPU, GPU, GPU.1.", is_common=True)] = "CPU"
    precision: Annotated[
        Precision,
        option(
            "Precision of inference. int8: compressed weights are multiplied by activations in int8, the rest is f32. "
            "auto is bf16 on a CPU with AMX, for weights that are not compressed and with latent attention, else int8."
        ),
    ] = "auto"
    kv_cache_dtype: Annotated[
        KvCacheDtype,
        option(
            "Type of the KV cache; auto on x86 is f16 where the memory holds enough requests of full length, else u8, "
            "with scaled keys where the first load finds that plain u8 does harm to the model."
        ),
    ] = "auto"
    kv_cache_gib: (
        Annotated[
            float,
            Meta(gt=0, le=2**20),
            option(
                "KV cache size in GiB.",
                unset="max_num_seqs full contexts, at most 40 % of the free memory",
                is_common=True,
            ),
        ]
        | None
    ) = None
    state_cache_gib: (
        Annotated[
            float,
            Meta(ge=0, le=2**20),
            option(
                "GiB of states of recurrent layers (LFM2, Qwen3.5, ...) that are kept for prompts that begin alike.",
                unset="eight for each of max_num_seqs, at most 10 % of the free memory",
            ),
        ]
        | None
    ) = None
    max_num_seqs: Annotated[
        int, Meta(ge=1, le=4096), option("Sequences in one batch.", is_common=True)
    ] = 128
    max_num_batched_tokens: Annotated[
        int, Meta(ge=16), option("Tokens in one step; prompts beyond it are prefilled in chunks.")
    ] = 512
    prefix_caching: Annotated[
        bool, option("Reuse full KV blocks between requests, each API key its own.")
    ] = True
    shared_prefix_cache: Annotated[
        bool,
        option(
            "API keys share KV blocks too: how fast and how far cached an answer is tells what others have asked."
        ),
    ] = False
    prompt_lookup: Annotated[
        bool,
        option(
            "Guess tokens from where the text stood before, and compute as many beside the last one as pay; no answer "
            "changes."
        ),
    ] = True
    deterministic: Annotated[
        bool,
        option(
            "A request that is greedy or has a seed gets one answer, whatever else the server does; steps take longer. "
            "Only on the CPU, and not for adapters, models with recurrent layers, and models that see a picture whole."
        ),
    ] = False
    prefix_cache_dir: Annotated[
        str,
        option(
            "A directory that keeps what was computed for prompts, so that they are hits after a restart.",
            unset="none",
        ),
    ] = ""
    prefix_cache_dir_gib: Annotated[
        float,
        Meta(gt=0, le=2**20),
        option("What it may hold; above that, what was used least recently goes."),
    ] = 10.0
    grammar_timeout_s: Annotated[
        float,
        Meta(gt=0, le=600),
        option("How long a response format or a tool's schema may take to be compiled."),
    ] = 5.0
    step_timeout_s: Annotated[
        float,
        Meta(ge=2, le=86400),
        option("How long a step may take until the engine counts as hung and is replaced."),
    ] = 300.0
    num_threads: Annotated[
        int,
        Meta(ge=0),
        option("CPU threads of the model; 0: as the runtime has it, within a quota."),
    ] = 0
    replicas: Annotated[
        int,
        Meta(ge=1),
        option(
            "Engines of the model, each with its part of the processors and of the memory; requests go to where their "
            "beginning is cached and the least work waits.",
            is_common=True,
        ),
    ] = 1
    engine_process: Annotated[
        bool, option("Run the engine in a child process (else in a thread).")
    ] = True


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Address"

    host: Annotated[
        str, option("Address to listen on; 0.0.0.0 is every network interface.", is_common=True)
    ] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535), option("Port to listen on; 0 takes a free one.", is_common=True)
    ] = 8000
    uds: Annotated[
        str, option("A unix socket to listen on, instead of host and port.", unset="none")
    ] = ""
    allowed_hosts: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(\*|[A-Za-z0-9._-]+)$")], ...],
        option(
            "A name by which clients may call the server, besides addresses and this machine's; * is every name.",
            unset="every name; none on a loopback address without API keys",
        ),
    ] = ()
    root_path: Annotated[
        str,
        Meta(pattern=r"^(/[^/?#\s]+)*$"),
        option(
            "The prefix, like /llm, under which a proxy serves this server, whether it passes it on or takes it off.",
            unset="none",
        ),
    ] = ""
    playground: Annotated[
        bool, option("A page at / to chat with the model in a browser.", is_common=True)
    ] = True
    ssl_certfile: Annotated[
        str,
        option(
            "A PEM certificate (and what leads to its root); with it, HTTPS is spoken.",
            unset="none",
            heading="TLS",
        ),
    ] = ""
    ssl_keyfile: Annotated[
        str,
        option("The certificate's private key.", unset="in the certificate's file", heading="TLS"),
    ] = ""
    ssl_ca_certs: Annotated[
        str,
        option("PEM certificates of who may issue those of clients.", unset="none", heading="TLS"),
    ] = ""
    ssl_client_auth: Annotated[
        Literal["none", "optional", "required"],
        option("Whether clients show a certificate.", heading="TLS"),
    ] = "none"
    profile: Annotated[
        Profile,
        option(
            "lmi: /v1/chat/completions speaks as LMI does, and LMI's own options are read at the start. "
            "ovms: errors, best_of and some defaults are those of OpenVINO Model Server, and its flags are read.",
            heading="Compatibility",
        ),
    ] = "openai"
    responses_done: Annotated[
        bool,
        option(
            "Streams of /v1/responses end with `data: [DONE]`, which OpenVINO Model Server sends there.",
            heading="Compatibility",
        ),
    ] = True
    verbose_response: Annotated[
        bool,
        option(
            "Chats and completions have `__verbose`: the rendered prompt, and the output with its special tokens. "
            "Needs --profile ovms.",
            heading="Compatibility",
        ),
    ] = False
    lmi_default_max_tokens: Annotated[
        int,
        Meta(ge=1),
        option(
            "Limit of generated tokens where a request in one of LMI's schemas gives none.",
            heading="Compatibility",
        ),
    ] = 30
    lmi_tgi_compat: Annotated[
        bool,
        option(
            "LMI's standard schema is answered as text-generation-inference does.",
            heading="Compatibility",
        ),
    ] = False
    lmi_vector_lists: Annotated[
        bool,
        option(
            "/invocations answers one text with a list of one vector, as LMI's handler on vLLM does.",
            heading="Compatibility",
        ),
    ] = False
    lmi_strict_logprobs: Annotated[
        bool,
        option(
            "Logprobs in LMI's chat streams in the form that LMI gives them, mistakes included.",
            heading="Compatibility",
        ),
    ] = False
    api_key: Annotated[
        tuple[Annotated[str, Meta(pattern=API_KEY_PATTERN)], ...],
        option(
            "A key that clients may send. Other users of the machine can read flags: prefer OUZEL_API_KEY or "
            "--api-key-file.",
            unset="none: everybody may ask",
            is_common=True,
            is_secret=True,
        ),
    ] = ()
    api_key_file: Annotated[
        str,
        option(
            "A file with further keys, one per line; empty lines and # lines are skipped.",
            unset="none",
            is_common=True,
        ),
    ] = ""
    admin_api_key: Annotated[
        str,
        Meta(pattern=r"^[!-~]*$"),
        option(
            "A key for those who load and unload models while the server runs. Other users of the machine can read "
            "flags: prefer OUZEL_ADMIN_API_KEY.",
            unset="none: nobody may",
            is_secret=True,
            heading="Several models",
        ),
    ] = ""
    open_metrics: Annotated[bool, option("/metrics needs no API key, also below /v1 and /v3.")] = (
        False
    )
    allowed_origins: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(\*|null|[a-z][a-z0-9+.-]*://[^/,\s]+)$")], ...],
        option(
            "An origin whose pages may call from a browser, like https://chat.example.org, or * for all.",
            unset="none: no CORS headers, and what their pages send is a 403",
            heading="Browsers (CORS)",
        ),
    ] = ()
    allowed_methods: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(\*|[A-Z]+)$")], ...],
        option(
            "An HTTP method those pages may use, or * for all.",
            unset="none",
            heading="Browsers (CORS)",
        ),
    ] = ("*",)
    allowed_headers: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")], ...],
        option(
            "A request header those pages may send, or * for all.",
            unset="none",
            heading="Browsers (CORS)",
        ),
    ] = ("*",)
    allow_credentials: Annotated[
        bool,
        option("Let those pages send cookies and client certificates.", heading="Browsers (CORS)"),
    ] = False


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Storage of responses and conversations"

    store: Annotated[
        bool, option("Keep responses (unless a request says store: false) and conversations.")
    ] = True
    store_url: Annotated[
        str,
        option(
            "Where: sqlite:///PATH, or postgresql://USER:PASSWORD@HOST/NAME, which several servers may share. Other "
            "users of the machine can read flags: prefer OUZEL_STORE_URL for a password.",
            unset="responses.sqlite3 in --data-dir",
            is_secret=True,
        ),
    ] = ""
    data_dir: Annotated[
        str,
        option(
            "Where the server keeps its data.", unset="$XDG_DATA_HOME/ouzel or ~/.local/share/ouzel"
        ),
    ] = ""
    store_max_age_days: Annotated[
        float, Meta(gt=0, le=36500), option("What nobody has used for longer is deleted.")
    ] = 30.0
    store_max_gib: Annotated[
        float, Meta(gt=0, le=2**20), option("Above it, what was used least recently is deleted.")
    ] = 1.0
