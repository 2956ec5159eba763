"""CamemBERT (sentence-camembert, French rerankers) is RoBERTa for French."""

from ouzel.backends.openvino.encoders import roberta

build = roberta.build
