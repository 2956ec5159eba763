from .names import ReasoningConfig, StructuredOutputsConfig

__all__ = ["ReasoningConfig", "StructuredOutputsConfig"]
