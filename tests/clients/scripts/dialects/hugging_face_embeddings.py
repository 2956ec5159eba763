"""Calls the text-embeddings-inference API with huggingface_hub's client.

Usage: `python hugging_face_embeddings.py ROOT`.
"""

import sys

from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

client = InferenceClient(base_url=sys.argv[1])
vectors = client.feature_extraction(["the sea", "a desk"], normalize=True, truncate=True)
assert vectors.shape[0] == 2 and abs(float((vectors[0] ** 2).sum()) - 1) < 1e-3
similarities = client.sentence_similarity("the sea", other_sentences=["the sea", "a desk"])
assert abs(similarities[0] - 1) < 1e-3 and similarities[1] < similarities[0]
try:
    client.feature_extraction("a " * 10_000, truncate=False)
except HfHubHTTPError as error:
    assert error.response.status_code == 413 and error.response.json()["error_type"] == "Validation"
else:
    raise AssertionError("a text that is too long was embedded")
