from typing import Any


class VLLMError(Exception):
    pass


class VLLMClientError(VLLMError):
    pass


class VLLMServerError(VLLMError):
    pass


class EngineDeadError(VLLMServerError):
    pass


class VLLMValidationError(VLLMClientError):
    def __init__(self, message: str, *, parameter: str | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.value = value

    def __str__(self) -> str:
        extras = (
            [] if self.parameter is None else [f"parameter={self.parameter}", f"value={self.value}"]
        )
        return super().__str__() + (f" ({', '.join(extras)})" if extras else "")
