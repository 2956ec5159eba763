"""Builds graphs as OpenVINO Model Server's command line writes them."""

from typing import Literal

_GRAPH = """
    # OVMS_GRAPH_QUEUE_MAX_SIZE: AUTO
    input_stream: "HTTP_REQUEST_PAYLOAD:input"
    output_stream: "HTTP_RESPONSE_PAYLOAD:output"
    node: {
    name: "LLMExecutor"
    calculator: "HttpLLMCalculator"
    input_stream: "LOOPBACK:loopback"
    input_stream: "HTTP_REQUEST_PAYLOAD:input"
    input_side_packet: "LLM_NODE_RESOURCES:llm"
    output_stream: "LOOPBACK:loopback"
    output_stream: "HTTP_RESPONSE_PAYLOAD:output"
    input_stream_info: {
        tag_index: 'LOOPBACK:0',
        back_edge: true
    }
    node_options: {
        [type.googleapis.com / mediapipe.LLMCalculatorOptions]: {
            OPTIONS
        }
    }
    input_stream_handler {
        input_stream_handler: "SyncSetInputStreamHandler",
        options {
        [mediapipe.SyncSetInputStreamHandlerOptions.ext] {
            sync_set {
            tag_index: "LOOPBACK:0"
            }
        }
        }
    }
    }
"""


def write_graph(options: str) -> str:
    return _GRAPH.replace("OPTIONS", options)


_VECTORS = """
# File created with: OpenVINO Model Server 2026.4
input_stream: "REQUEST_PAYLOAD:input"
output_stream: "RESPONSE_PAYLOAD:output"
node {
    name: "model",
    calculator: "CALCULATOR"
    input_side_packet: "NODE_RESOURCES:servable"
    input_stream: "REQUEST_PAYLOAD:input"
    output_stream: "RESPONSE_PAYLOAD:output"
    node_options: {
        [type.googleapis.com / mediapipe.CALCULATOROptions]: {
            OPTIONS
        }
    }
}
"""


def write_vectors_graph(kind: Literal["Embeddings", "Rerank"], options: str) -> str:
    return _VECTORS.replace("CALCULATOR", f"{kind}CalculatorOV").replace("OPTIONS", options)
