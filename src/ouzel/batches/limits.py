"""Defines the limits of a batch; they are OpenAI's and Anthropic's."""

MAX_LINES = 50_000
MAX_INPUT_BYTES = 200 * 10**6
MAX_CUSTOM_ID_LEN = 512
MAX_MESSAGE_REQUESTS = 100_000
WINDOW_S = 24 * 3600
# Ended batches are deleted after this time; Anthropic keeps results as long.
MAX_AGE_S = 29 * 24 * 3600.0

# the endpoints whose requests may be lines of a file
ENDPOINTS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings")
MESSAGES = "/v1/messages"
