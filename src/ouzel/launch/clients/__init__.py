"""Makes the settings of each client; `launch/table.py` lists the clients."""
