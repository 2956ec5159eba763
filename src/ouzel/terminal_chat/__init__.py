"""`ouzel chat` holds a conversation in a terminal, or prints one answer; it uses the API only."""
