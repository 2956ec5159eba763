"""Chats of other APIs than Responses, in which this server runs tools; without HTTP."""
