"""Names the files of a checkpoint's weights, in the order of preference, and of an adapter."""

INDEX_FILE, SINGLE_FILE = "model.safetensors.index.json", "model.safetensors"
TORCH_FILES = ("pytorch_model.bin.index.json", "pytorch_model.bin")  # written by torch.save
WEIGHT_FILES = (INDEX_FILE, SINGLE_FILE, *TORCH_FILES)
TORCH_SUFFIX = ".bin"
# PEFT's; an adapter beside a model is no weights of it
ADAPTER_WEIGHTS, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
