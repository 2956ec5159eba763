"""Turns texts into vectors, or pairs of texts into scores.

    text, pair ─TextEncoder─> EncodedText ─VectorRun─> raw vectors ─finish─> embeddings, scores

The steps after the model (normalising a vector, cutting its dimensions, the sigmoid of a score) are
computed here, in float32.
"""

from ouzel.vectors.chat_texts import check_chats
from ouzel.vectors.encoded_text import EncodedText
from ouzel.vectors.finish import (
    activate_logits,
    compute_relevance,
    finish_vectors,
    normalise_rows,
)
from ouzel.vectors.late_scores import LateScores, keep_rows
from ouzel.vectors.late_texts import LateTexts, check_tokens
from ouzel.vectors.pieces import PieceLimit
from ouzel.vectors.reranker_prompt import RerankerPrompt
from ouzel.vectors.text_encoder import TextEncoder, TextLimit
from ouzel.vectors.token_weights import TokenWeights
from ouzel.vectors.vector_run import VectorRun

__all__ = [
    "EncodedText",
    "LateScores",
    "LateTexts",
    "PieceLimit",
    "RerankerPrompt",
    "TextEncoder",
    "TextLimit",
    "TokenWeights",
    "VectorRun",
    "activate_logits",
    "check_chats",
    "check_tokens",
    "compute_relevance",
    "finish_vectors",
    "keep_rows",
    "normalise_rows",
]
