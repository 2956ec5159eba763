"""Decides which models are in memory: loaded for a request, unloaded when idle or to make room.

A group is the unit that is loaded and unloaded: mostly one model. Rules

1. A group with open requests is never unloaded. A group that must make room takes no new requests;
   its open requests end first.
2. Groups are loaded in the order of their oldest waiting request, one after the other. A later
   group may overtake only if it takes no room that an earlier one needs.
3. The least recently used group makes room first, and idle groups before busy ones.
4. A request that waits is counted as open from the moment when its model is ready, so a model
   cannot be unloaded between its load and its first request.
"""
