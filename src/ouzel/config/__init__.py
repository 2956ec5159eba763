"""Records of all options: each option is written once, as a field of a record.

The flag, the environment variable, the YAML key and the help of an option come from its field:
`max_num_seqs` is `--max-num-seqs`, `OUZEL_MAX_NUM_SEQS` and `max_num_seqs:`. A flag beats the
environment, which beats the file. The records hold the user's choices; `EngineInfo` holds the
engine's decisions.
"""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from ouzel.config.audio import AudioConfig
from ouzel.config.hosted_tools import HostedToolsConfig
from ouzel.config.limits import LimitsConfig
from ouzel.config.media import MediaConfig
from ouzel.config.model import ModelConfig
from ouzel.config.models import ModelsConfig
from ouzel.config.observability import ObservabilityConfig
from ouzel.config.option import option
from ouzel.config.vllm import VllmConfig

__all__ = [
    "API_KEY_PATTERN",
    "AudioConfig",
    "EngineConfig",
    "HostedToolsConfig",
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
API_KEY_PATTERN = r"^[!-~]+$"  # the characters that an HTTP header can carry


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Engine"

    device: Annotated[str, option("OpenVINO device: CPU, GPU, GPU.1.", is_common=True)] = "CPU"
    precision: Annotated[
        Precision,
        option(
            "Precision of inference. int8 multiplies compressed weights by int8 activations and "
            "keeps the rest in f32. auto is bf16 on a CPU with AMX, for uncompressed weights and "
            "for latent attention, else int8."
        ),
    ] = "auto"
    kv_cache_dtype: Annotated[
        KvCacheDtype,
        option(
            "Type of the KV cache. auto on x86 is f16 if the memory holds enough requests of full "
            "length, else u8, with scaled keys if the first load finds that plain u8 harms the "
            "model."
        ),
    ] = "auto"
    kv_cache_gib: (
        Annotated[
            float,
            Meta(gt=0, le=2**20),
            option(
                "Size of the KV cache in GiB.",
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
                "GiB for stored states of recurrent layers (LFM2, Qwen3.5, ...), which later "
                "prompts with the same beginning reuse.",
                unset="eight states for each of max_num_seqs, at most 10 % of the free memory",
            ),
        ]
        | None
    ) = None
    max_num_seqs: Annotated[
        int, Meta(ge=1, le=4096), option("Largest number of sequences in a batch.", is_common=True)
    ] = 128
    max_num_batched_tokens: Annotated[
        int, Meta(ge=16), option("Tokens in one step; longer prompts take several steps.")
    ] = 512
    prefix_caching: Annotated[
        bool, option("Reuse KV blocks of requests with the same API key.")
    ] = True
    shared_prefix_cache: Annotated[
        bool,
        option(
            "Share KV blocks between API keys too. Timing and cached-token counts of an answer "
            "then reveal prompts of other users."
        ),
    ] = False
    prompt_lookup: Annotated[
        bool,
        option(
            "Propose tokens from earlier occurrences of the last ones, and compute as many as save "
            "time; answers do not change."
        ),
    ] = True
    deterministic: Annotated[
        bool,
        option(
            "Give a greedy or seeded request the same answer under any load; steps take longer. "
            "CPU only; not for adapters, recurrent layers and models that attend to whole images."
        ),
    ] = False
    prefix_cache_dir: Annotated[
        str,
        option(
            "A directory that keeps KV blocks over restarts.",
            unset="none",
        ),
    ] = ""
    prefix_cache_dir_gib: Annotated[
        float,
        Meta(gt=0, le=2**20),
        option("Size limit of --prefix-cache-dir; the least recently used blocks are deleted."),
    ] = 10.0
    grammar_timeout_s: Annotated[
        float,
        Meta(gt=0, le=600),
        option("Longest time to compile a response format or tool schema."),
    ] = 5.0
    step_timeout_s: Annotated[
        float,
        Meta(ge=2, le=86400),
        option("Longest time of a step; then the engine counts as hung and is replaced."),
    ] = 300.0
    num_threads: Annotated[
        int,
        Meta(ge=0),
        option("CPU threads of the model; 0: the runtime's choice, within a container's quota."),
    ] = 0
    replicas: Annotated[
        int,
        Meta(ge=1),
        option(
            "Engines of the model, each with its part of the processors and the memory. A request "
            "goes to the engine that has its beginning cached and the least work waiting.",
            is_common=True,
        ),
    ] = 1
    engine_process: Annotated[
        bool, option("Run the engine in a child process; off: in a thread.")
    ] = True


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Address"

    host: Annotated[
        str, option("Address to listen on; 0.0.0.0: every interface.", is_common=True)
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
            "A name by which clients may call the server, besides IP addresses and the names of "
            "this machine; * is every name.",
            unset="every name; none on a loopback address without API keys",
        ),
    ] = ()
    root_path: Annotated[
        str,
        Meta(pattern=r"^(/[^/?#\s]+)*$"),
        option(
            "Path prefix, like /llm, under which a proxy serves this server; it does not matter "
            "whether the proxy removes the prefix.",
            unset="none",
        ),
    ] = ""
    playground: Annotated[
        bool, option("A page at / to chat with the model in a browser.", is_common=True)
    ] = True
    ssl_certfile: Annotated[
        str,
        option(
            "A PEM certificate with its chain; it turns HTTPS on.",
            unset="none",
            heading="TLS",
        ),
    ] = ""
    ssl_keyfile: Annotated[
        str,
        option("The private key.", unset="in the file of the certificate", heading="TLS"),
    ] = ""
    ssl_ca_certs: Annotated[
        str,
        option(
            "PEM certificates of the issuers of client certificates.", unset="none", heading="TLS"
        ),
    ] = ""
    ssl_client_auth: Annotated[
        Literal["none", "optional", "required"],
        option("Whether clients must show a certificate.", heading="TLS"),
    ] = "none"
    prompts: Annotated[
        str,
        option(
            "A YAML file with prompt templates for /v1/responses, or a directory of such files.",
            unset="none",
            heading="Prompt templates",
        ),
    ] = ""
    profile: Annotated[
        Profile,
        option(
            "lmi: /v1/chat/completions answers like LMI, and the server reads LMI's options. ovms: "
            "errors, best_of and some defaults follow OpenVINO Model Server, and its flags are "
            "read.",
            heading="Compatibility",
        ),
    ] = "openai"
    responses_done: Annotated[
        bool,
        option(
            "End streams of /v1/responses with `data: [DONE]`.",
            heading="Compatibility",
        ),
    ] = True
    verbose_response: Annotated[
        bool,
        option(
            "Add `__verbose` to chats and completions: the rendered prompt, and the output with "
            "its special tokens. Needs --profile ovms.",
            heading="Compatibility",
        ),
    ] = False
    lmi_default_max_tokens: Annotated[
        int,
        Meta(ge=1),
        option(
            "Limit of generated tokens for a request in one of LMI's schemas without a limit.",
            heading="Compatibility",
        ),
    ] = 30
    lmi_tgi_compat: Annotated[
        bool,
        option(
            "Answer LMI's standard schema like text-generation-inference.",
            heading="Compatibility",
        ),
    ] = False
    lmi_vector_lists: Annotated[
        bool,
        option(
            "Answer one text at /invocations with a list of one vector, like LMI's handler on "
            "vLLM.",
            heading="Compatibility",
        ),
    ] = False
    lmi_strict_logprobs: Annotated[
        bool,
        option(
            "Write logprobs in LMI's chat streams exactly like LMI, with its mistakes.",
            heading="Compatibility",
        ),
    ] = False
    api_key: Annotated[
        tuple[Annotated[str, Meta(pattern=API_KEY_PATTERN)], ...],
        option(
            "A key that clients may send. Other users of the machine can read flags: prefer "
            "OUZEL_API_KEY or --api-key-file.",
            unset="none: no key is needed",
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
            "A key for requests that load and unload models. Other users of the machine can read "
            "flags: prefer OUZEL_ADMIN_API_KEY.",
            unset="none: such requests are refused",
            is_secret=True,
            heading="Several models",
        ),
    ] = ""
    open_metrics: Annotated[
        bool, option("Serve /metrics without an API key, also below /v1, /v3.")
    ] = False
    allowed_origins: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(\*|null|[a-z][a-z0-9+.-]*://[^/,\s]+)$")], ...],
        option(
            "An origin whose pages may send requests from a browser, like "
            "https://chat.example.org, or * for all.",
            unset="none: no CORS headers, and requests from other origins get a 403",
            heading="Browsers (CORS)",
        ),
    ] = ()
    allowed_methods: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(\*|[A-Z]+)$")], ...],
        option(
            "An HTTP method for pages of the allowed origins, or * for all.",
            unset="none",
            heading="Browsers (CORS)",
        ),
    ] = ("*",)
    allowed_headers: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")], ...],
        option(
            "A request header for pages of the allowed origins, or * for all.",
            unset="none",
            heading="Browsers (CORS)",
        ),
    ] = ("*",)
    allow_credentials: Annotated[
        bool,
        option(
            "Let pages of the allowed origins send cookies and client certificates.",
            heading="Browsers (CORS)",
        ),
    ] = False


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Storage of responses, conversations and chats"

    store: Annotated[
        bool,
        option("Store conversations, responses without store: false, chats with store: true."),
    ] = True
    store_url: Annotated[
        str,
        option(
            "Address of the store: sqlite:///PATH, or postgresql://USER:PASSWORD@HOST/NAME, which "
            "several servers may share. Other users of the machine can read flags: prefer "
            "OUZEL_STORE_URL for a password.",
            unset="responses.sqlite3 in --data-dir",
            is_secret=True,
        ),
    ] = ""
    data_dir: Annotated[
        str,
        option(
            "Directory of the server's data.", unset="$XDG_DATA_HOME/ouzel or ~/.local/share/ouzel"
        ),
    ] = ""
    store_max_age_days: Annotated[
        float, Meta(gt=0, le=36500), option("Delete stored objects that were unused for so long.")
    ] = 30.0
    store_max_gib: Annotated[
        float, Meta(gt=0, le=2**20), option("Size limit; the least recently used are deleted.")
    ] = 1.0
    files_max_gib: Annotated[
        float,
        Meta(gt=0, le=2**20),
        option("Size limit of all uploaded files; beyond it: a 413."),
    ] = 10.0
    vector_stores_max_gib: Annotated[
        float,
        Meta(gt=0, le=2**20),
        option("Size limit of all vector stores."),
    ] = 10.0
    vector_stores_key_max_gib: Annotated[
        Annotated[float, Meta(gt=0, le=2**20)] | None,
        option("Size limit of the vector stores of one API key.", unset="that of all"),
    ] = None
    max_file_bytes: Annotated[
        int, Meta(ge=1024, le=2**40), option("Longest file that clients may upload.")
    ] = 512 * 2**20
