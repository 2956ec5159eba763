"""The type that Alibaba-NLP gave its GTE models before transformers had them."""

from ouzel.backends.openvino.encoders import gte

build = gte.build
