"""The choices of a test about its server: its model, engine, limits and options."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field

from ouzel import __version__
from ouzel.api.endpoint.model_pulls import ModelPuller
from ouzel.api.endpoint.speech_services import SpeechServices
from ouzel.audio.decoder import AudioDecoder
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.checkpoint.speech_tokens import SpeechTokens
from ouzel.config import LimitsConfig, MediaConfig, ServerConfig
from ouzel.config.audio import AudioConfig
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.generation import ServedModel, system_fingerprint
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.parsers.base import Delta, Family, Parser
from ouzel.parsers.plain import PlainParser
from ouzel.parsers.registry import OutputFormat
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.hearing.base import SoundProcessor
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media_readers.document_texts import DocumentTextReader
from ouzel.prompts.media_readers.image_reader import ImageReader
from ouzel.prompts.media_readers.sound_reader import SoundReader
from ouzel.prompts.render import PromptRenderer
from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.video import VideoProcessor
from ouzel.responses.hosted.kinds import NO_HOSTED_KINDS, HostedKinds
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer
from tests.api.byte_tokens import DIE, FAIL, byte_tokenizer

MODEL = "org/parrot"
ALIAS = "parrot"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Panic(BaseException):
    """An error of a native library: pyo3's PanicException is not an `Exception` either."""


class FragileParser(PlainParser):
    """A parser with two bugs: "#" raises an exception, and a bell raises `Panic`."""

    def feed(self, text: str) -> list[Delta]:
        if text == "#":
            raise RuntimeError("a detail for the log")
        if text == "\a":
            raise Panic("a detail for the log")
        return super().feed(text)


def build_output_format(make_parser: Callable[[], Parser]) -> OutputFormat:
    """Builds an output format that sends the whole output through one parser."""
    family = Family(
        names=(),
        matches=lambda template: False,
        interleaved=lambda tools, prompt_text: make_parser(),
    )
    return OutputFormat(calls=family)


# A server of these tests transcribes by a script, which chooses no token.
_SPEECH_TOKENS = SpeechTokens(
    start=1,
    end=0,
    no_timestamps=2,
    first_timestamp=3,
    previous=None,
    no_speech=None,
    is_multilingual=False,
)


@dataclass(frozen=True)
class ServerSetup:
    """The choices of a test about its server; without `store_url` the server stores nothing."""

    options: Mapping[str, object] = field(default_factory=dict)  # options of the fake engine
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    config: ServerConfig = field(default_factory=ServerConfig)
    _: KW_ONLY
    has_chat_template: bool = True
    trusts_request_template: bool = False
    tokenizer: HuggingFaceTokenizer = field(default_factory=byte_tokenizer)
    # a function of tests/api/engines.py, or "module:function"
    engine_factory: str = "create_parrot"
    names: tuple[str, ...] = (MODEL, ALIAS)
    chat_template: str = CHAT_TEMPLATE
    output_format: OutputFormat = field(default_factory=lambda: build_output_format(FragileParser))
    sampling_defaults: SamplingDefaults = field(default_factory=SamplingDefaults)
    store_url: str | None = None
    step_timeout_s: float = 300
    max_tokens_limit: int | None = None
    max_hidden_tokens: int = 0
    shares_prefix_cache: bool = False
    refuses_unknown_tools: bool = False
    has_lenient_formats: bool = False
    reads_bare_calls: bool = True
    is_demo: bool = False
    image_processor: ImageProcessor | None = None  # not None: the model reads images
    video_processor: VideoProcessor | None = None  # not None: the model reads videos
    sound_processor: SoundProcessor | None = None  # not None: the model hears in chats
    media: MediaConfig = field(default_factory=MediaConfig)
    sentences: SentenceFiles | None = None  # not None: the model makes vectors or scores
    cuts_long_texts: bool = False
    max_document_pieces: int = 10_000
    puller: ModelPuller | None = None
    hosted: HostedKinds = NO_HOSTED_KINDS  # tools that the server runs
    containers: Containers | None = None  # not None: models run code, with the server's store
    max_file_bytes: int = 2**20
    speech: SpeechServices | None = None  # not None: speech models can be served
    vector_bytes_per_key: int = 2**30  # limit of the vector stores of a key
    # models beside this one; their limits, config and store_url are ignored
    further: tuple["ServerSetup", ...] = ()

    def engine_spec(self) -> EngineSpec:
        always = {
            "vocab_size": self.tokenizer.vocab_size,
            "failing_token_id": FAIL,
            "fatal_token_id": DIE,
        }
        factory = (
            self.engine_factory
            if ":" in self.engine_factory
            else f"tests.api.engines:{self.engine_factory}"
        )
        return EngineSpec(
            factory=factory, options={**always, **self.options}, heartbeat_every_s=0.25
        )

    def build_model(self, engine: EngineClient) -> ServedModel:
        images = self._images(engine.info.max_model_len)
        template = (
            ChatTemplate({"default": self.chat_template}, {}) if self.has_chat_template else None
        )
        return ServedModel(
            names=self.names,
            tokenizer=self.tokenizer,
            renderer=PromptRenderer(
                self.tokenizer,
                template,
                engine.info.max_model_len,
                parsed_marks=self.output_format.prompt_marks,
                trusts_request_template=self.trusts_request_template,
                images=images,
                document_texts=self._document_texts(images),
            ),
            sampling_defaults=self.sampling_defaults,
            engine=engine,
            output_format=self.output_format,
            vocabulary=GrammarVocabulary({}, self.tokenizer.vocab_size),
            max_tokens_limit=self.max_tokens_limit,
            max_hidden_tokens=self.max_hidden_tokens,
            shares_prefix_cache=self.shares_prefix_cache,
            refuses_unknown_tools=self.refuses_unknown_tools,
            has_lenient_formats=self.has_lenient_formats,
            reads_bare_calls=self.reads_bare_calls,
            is_demo=self.is_demo,
            sentences=self.sentences,
            speech=_SPEECH_TOKENS if engine.info.task == "transcribe" else None,
            speaks=engine.info.task == "speak",
            cuts_long_texts=self.cuts_long_texts,
            max_document_pieces=self.max_document_pieces,
            created=1_700_000_000,
            system_fingerprint=system_fingerprint(MODEL, engine.info, __version__),
        )

    def _images(self, max_model_len: int) -> ImageReader | None:
        processor, hearing = self.image_processor, self.sound_processor
        if processor is None and hearing is None:
            return None
        loader = MediaLoader(self.media)
        sounds: SoundReader | None = None
        if hearing is not None:
            sounds = SoundReader(hearing, loader, AudioDecoder(AudioConfig()))
        return ImageReader(processor, loader, max_model_len, self.video_processor, sounds=sounds)

    def _document_texts(self, images: ImageReader | None) -> DocumentTextReader | None:
        if self.sentences is not None:
            return None
        if images is not None:
            return DocumentTextReader(images.loader, keeps_pdfs=images.has_pictures)
        return DocumentTextReader(MediaLoader(self.media))
