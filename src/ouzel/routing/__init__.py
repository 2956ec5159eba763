"""Chooses the replica of a request by its keys and a policy, without I/O and without a
tokenizer.
"""

from ouzel.routing.bodies import find_chain_root, make_body_keys
from ouzel.routing.keys import RequestKeys, make_token_keys
from ouzel.routing.policy import LeastConnections, RoutingPolicy, Ticket
from ouzel.routing.prefix_policy import PrefixPolicy, Weights

__all__ = [
    "LeastConnections",
    "PrefixPolicy",
    "RequestKeys",
    "RoutingPolicy",
    "Ticket",
    "Weights",
    "find_chain_root",
    "make_body_keys",
    "make_token_keys",
]
