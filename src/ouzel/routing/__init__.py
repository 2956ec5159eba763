"""Chooses the replica of a request by its keys and a policy, without I/O and without a
tokenizer.
"""

from ouzel.routing.bodies import body_keys, root_of
from ouzel.routing.keys import RequestKeys, token_keys
from ouzel.routing.policy import LeastConnections, RoutingPolicy, Ticket
from ouzel.routing.prefix_policy import PrefixPolicy, Weights

__all__ = [
    "LeastConnections",
    "PrefixPolicy",
    "RequestKeys",
    "RoutingPolicy",
    "Ticket",
    "Weights",
    "body_keys",
    "root_of",
    "token_keys",
]
