"""`ouzel chat` is a conversation in a terminal, or one answer in a pipe; it knows servers by their API only."""
