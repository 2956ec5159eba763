"""Loads the tokenizer, chat template and formats of a model; the engine loads the weights."""

import asyncio
import logging
import time
from dataclasses import replace
from pathlib import Path

import ouzel
from ouzel.audio.decoder import AudioDecoder
from ouzel.checkpoint.model_facts import read_model_facts
from ouzel.checkpoint.model_files import sampling_defaults
from ouzel.checkpoint.sentence_files import ModelKind, SentenceFiles, read_sentence_files
from ouzel.checkpoint.speech_tokens import SpeechTokens, read_speech_tokens
from ouzel.checkpoint.text_tasks import NO_PROMPT
from ouzel.config import MediaConfig
from ouzel.engine_client import Engines
from ouzel.errors import ModelLoadError
from ouzel.generation import ServedModel, prepare_reasoning_budgets, system_fingerprint
from ouzel.grammar.vocabulary import GrammarVocabulary, special_token_ids
from ouzel.model_store.model_directory import LocalModel
from ouzel.options.options import Options
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.hearing.base import SoundProcessor
from ouzel.prompts.hearing.loader import load_sound_processor
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media_readers.document_texts import DocumentTextReader
from ouzel.prompts.media_readers.image_reader import ImageReader
from ouzel.prompts.media_readers.sound_reader import SoundReader
from ouzel.prompts.render import PromptRenderer
from ouzel.prompts.vision.base import ImageProcessor, PieceMaker
from ouzel.prompts.vision.loader import load_image_processor, load_video_processor
from ouzel.prompts.vision.video import VideoProcessor
from ouzel.serve.output_format import read_output_format
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer, load_tokenizer
from ouzel.types.engine_info import EngineInfo
from ouzel.vectors import check_chats, check_tokens

logger = logging.getLogger(__name__)

# Characters that hardly any vocabulary has.
_UNKNOWN = "\U0001039f\U0002a6d6\U0010fffd"

_REASONING_FIELDS = {
    "both": ("reasoning_content", "reasoning"),
    "reasoning_content": ("reasoning_content",),
    "reasoning": ("reasoning",),
}


async def load_served_model(
    options: Options, local: LocalModel, engine: Engines, starting: asyncio.Task[EngineInfo]
) -> ServedModel:
    """Reads the small files of a model while its engine starts; `starting` is the engine's task."""
    tokenizer = await asyncio.to_thread(load_tokenizer, local.directory)
    chat_template = await asyncio.to_thread(
        ChatTemplate.load, local.directory, options.model.chat_template
    )
    facts = await asyncio.to_thread(read_model_facts, local.directory)
    vocabulary = _grammar_vocabulary(tokenizer)
    chosen_format = read_output_format(local.directory, options.model)
    if options.model.calls_in_reasoning == "call":
        chosen_format = chosen_format.ending_at_calls(vocabulary.special_ids)
    await asyncio.to_thread(prepare_reasoning_budgets, chosen_format, tokenizer)
    info = await starting
    _log_engine(info)
    images = await asyncio.to_thread(
        _image_reader, local.directory, tokenizer, chat_template, info, options
    )
    names = local.names_by(options.model)
    sentences = await asyncio.to_thread(_sentence_files, local.directory, info, options)
    if sentences is not None and sentences.chats is not None and chat_template is None:
        raise ModelLoadError(
            f"{local.directory}: sentence_bert_config.json needs a chat template, for the modality "
            "message, and the model has none"
        )
    if sentences is not None:
        check_tokens(sentences, tokenizer, info.vocab_size, str(local.directory))
    model = ServedModel(
        names=names,
        tokenizer=tokenizer,
        renderer=PromptRenderer(
            tokenizer,
            chat_template,
            info.max_model_len,
            info.vocab_size,
            parsed_marks=chosen_format.prompt_marks,
            trusts_request_template=options.model.trust_request_chat_template,
            images=images,
            document_texts=_document_texts(info, images, options.media),
            num_output_tokens=info.num_reserved_tokens,
        ),
        sampling_defaults=sampling_defaults(local.directory),
        engine=engine,
        output_format=chosen_format,
        vocabulary=vocabulary,
        max_tokens_limit=options.model.max_tokens_limit,
        shares_prefix_cache=options.engine.shared_prefix_cache,
        max_hidden_tokens=options.model.max_hidden_tokens,
        guides_tools=options.model.enable_tool_guided_generation,
        has_lenient_formats=options.model.lenient_formats,
        reads_bare_calls=options.model.bare_calls,
        refuses_unknown_tools=options.model.unknown_tools == "refuse",
        forced_thinking_budget=options.model.forced_thinking_budget,
        reasoning_fields=_REASONING_FIELDS[options.model.reasoning_field],
        facts=facts,
        is_demo=local.is_demo,
        cuts_long_texts=options.model.truncate,
        max_document_pieces=options.model.max_document_chunks,
        sentences=sentences,
        speech=await asyncio.to_thread(_speech_tokens, local.directory, info),
        speaks=info.task == "speak",
        comes_and_goes=options.loads_on_request,
        created=int(time.time()),
        system_fingerprint=system_fingerprint(names[0], info, ouzel.__version__),
    )
    await asyncio.to_thread(check_chats, model, str(local.directory))
    return model


def _sentence_files(directory: Path, info: EngineInfo, options: Options) -> SentenceFiles | None:
    """Reads the sentence-transformers files; returns None for a model that writes text or speaks.

    With --profile ovms vectors have length 1, and the default prompt of the files is ignored, as in
    OpenVINO Model Server. Raises ModelLoadError.
    """
    if info.task in ("generate", "transcribe", "speak"):
        return None
    is_ovms = options.server.profile == "ovms"
    kind: ModelKind = "decoder" if info.num_blocks or info.is_causal else "encoder"
    files = read_sentence_files(directory, kind, pooling=options.model.pooling_mode)
    return replace(
        files,
        is_matryoshka=files.is_matryoshka or options.model.matryoshka,
        default_prompt=NO_PROMPT if is_ovms else files.default_prompt,
        normalises=(files.normalises or is_ovms)
        if options.model.normalize is None
        else options.model.normalize,
    )


def _speech_tokens(directory: Path, info: EngineInfo) -> SpeechTokens | None:
    """Reads the tokens of transcripts; returns None for a model that reads no sound.

    Raises ModelLoadError.
    """
    return read_speech_tokens(directory) if info.task == "transcribe" else None


def _document_texts(
    info: EngineInfo, images: ImageReader | None, config: MediaConfig
) -> DocumentTextReader | None:
    """Returns the reader of texts for a model that chats."""
    if info.task != "generate":
        return None
    if images is not None:
        return DocumentTextReader(images.loader, keeps_pdfs=images.has_pictures)
    return DocumentTextReader(MediaLoader(config))


def _image_reader(
    directory: Path,
    tokenizer: HuggingFaceTokenizer,
    chat_template: ChatTemplate | None,
    info: EngineInfo,
    options: Options,
) -> ImageReader | None:
    """Returns the reader of images and sounds, or None for a model that reads only text.

    Raises ModelLoadError.
    """
    processor = _image_processor(directory, tokenizer) if info.has_vision else None
    hearing = _sound_processor(directory, tokenizer) if info.has_hearing else None
    if processor is None and hearing is None:
        return None
    imports: tuple[str, ...] = ()
    videos: VideoProcessor | None = None
    if processor is not None:
        imports = (PieceMaker.__module__, type(processor).__module__)
        videos = _video_processor(directory, tokenizer, chat_template)
    loader = MediaLoader(options.media, imports=imports)
    if processor is not None:
        loader.decoders.start()
    sounds: SoundReader | None = None
    if hearing is not None:
        sounds = SoundReader(hearing, loader, AudioDecoder(options.audio))
    return ImageReader(processor, loader, info.max_model_len, videos, sounds=sounds)


def _image_processor(directory: Path, tokenizer: HuggingFaceTokenizer) -> ImageProcessor | None:
    """Returns the processor of images, or None for a checkpoint without one.

    Raises ModelLoadError.
    """
    processor = load_image_processor(directory)
    if processor is None:
        logger.warning("images will be refused: %s has no preprocessor_config.json", directory)
        return None
    _check_feature_token(directory, tokenizer, processor.feature_token, "images")
    return processor


def _sound_processor(directory: Path, tokenizer: HuggingFaceTokenizer) -> SoundProcessor | None:
    """Returns the processor of sounds, or None for a family without one. Raises ModelLoadError."""
    processor = load_sound_processor(directory)
    if processor is not None:
        _check_feature_token(directory, tokenizer, processor.feature_token, "sounds")
    return processor


def _check_feature_token(
    directory: Path, tokenizer: HuggingFaceTokenizer, token: str, kind: str
) -> None:
    """Raises ModelLoadError if a client's text could have the token of images or sounds."""
    if token not in tokenizer.control_tokens:
        raise ModelLoadError(
            f"{directory}/tokenizer.json: {token!r}, the token of {kind}, must be among its "
            "added_tokens"
        )
    if tokenizer.control_tokens[token] in tokenizer.encode(_UNKNOWN, add_special_tokens=False):
        raise ModelLoadError(
            f"{directory}/tokenizer.json: {token!r}, the token of {kind}, must not stand for "
            "unknown characters of texts, too"
        )


def _video_processor(
    directory: Path, tokenizer: HuggingFaceTokenizer, chat_template: ChatTemplate | None
) -> VideoProcessor | None:
    """Returns the processor of videos, or None if the model or its chat template has no videos.

    Raises ModelLoadError.
    """
    processor = load_video_processor(directory)
    if processor is None:
        return None
    if processor.feature_token not in tokenizer.control_tokens:
        logger.info(
            "videos will be refused: %s/tokenizer.json has no %r",
            directory,
            processor.feature_token,
        )
        return None
    if chat_template is None or processor.placeholder not in chat_template.default_source:
        logger.info(
            "videos will be refused: the chat template does not write %r", processor.placeholder
        )
        return None
    return processor


def _grammar_vocabulary(tokenizer: HuggingFaceTokenizer) -> GrammarVocabulary:
    added = [
        {"id": token_id, "content": token.content, "special": token.special}
        for token_id, token in tokenizer.added_tokens.items()
    ]
    return GrammarVocabulary(
        special_ids=special_token_ids({"added_tokens": added}),
        vocab_size=tokenizer.vocab_size,
        eos_token_ids=tokenizer.eos_token_ids,
    )


def _log_engine(info: EngineInfo) -> None:
    if info.task != "generate":
        logger.info("the task of the model is %s (see --task)", info.task)
    cache = (
        f"KV cache {info.kv_cache_dtype} with room for {info.num_blocks * info.block_size} tokens, "
    )
    logger.info(
        "%s on %s: weights %s, inference %s, %scontext %d tokens, loaded in %.1f s",
        info.model_type,
        info.device,
        info.weights,
        info.precision,
        cache if info.kv_cache_dtype != "none" else "",
        info.max_model_len,
        info.load_s,
    )
    if info.is_deterministic:
        logger.info("deterministic: greedy and seeded requests get the same answer under any load")
