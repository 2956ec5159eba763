"""This room lets chats of other APIs than Responses run tools of the server; without HTTP."""
