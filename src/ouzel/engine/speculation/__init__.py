"""What may come next is guessed, and how many guesses pay: token ids and numbers only, nothing of engines."""
