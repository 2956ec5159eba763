"""Programs of ours ask an API through one protocol, whether a server answers or an app in this process."""
