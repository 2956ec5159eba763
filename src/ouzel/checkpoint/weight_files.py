"""Names the files of a checkpoint's weights, in the order of preference."""

INDEX_FILE, SINGLE_FILE = "model.safetensors.index.json", "model.safetensors"
TORCH_FILES = ("pytorch_model.bin.index.json", "pytorch_model.bin")  # written by torch.save
WEIGHT_FILES = (INDEX_FILE, SINGLE_FILE, *TORCH_FILES)
TORCH_SUFFIX = ".bin"
ADAPTER_FILE = "adapter_model.safetensors"  # PEFT's: an adapter beside a model is no weights of it
