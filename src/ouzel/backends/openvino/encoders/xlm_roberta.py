"""XLM-RoBERTa (bge-m3, multilingual e5, bge-reranker) is RoBERTa for many languages."""

from ouzel.backends.openvino.encoders import roberta

build = roberta.build
