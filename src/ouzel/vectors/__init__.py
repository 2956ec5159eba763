"""The path from texts to what a model makes of them instead of tokens: a vector of each, or scores of pairs.

    text, pair ─TextEncoder─> EncodedText ─VectorRun─> vectors as the model gives them ─finish─> embeddings, scores

What is done to a vector behind the model (its length, fewer dimensions, a sigmoid of a score) is done here, in float32.
"""

from ouzel.vectors.encoded_text import EncodedText
from ouzel.vectors.finish import finished_vectors, relevance, score_values
from ouzel.vectors.pieces import PieceLimit
from ouzel.vectors.reranker_prompt import RerankerPrompt
from ouzel.vectors.text_encoder import TextEncoder, TextLimit
from ouzel.vectors.vector_run import VectorRun

__all__ = [
    "EncodedText",
    "PieceLimit",
    "RerankerPrompt",
    "TextEncoder",
    "TextLimit",
    "VectorRun",
    "finished_vectors",
    "relevance",
    "score_values",
]
