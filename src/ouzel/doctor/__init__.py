"""What this machine has, how fast it is at what serving takes, which models fit, and what could be better."""
