"""The report is one HTML page, which opens without a network and runs no script."""
