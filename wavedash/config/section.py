"""Section: the base of every section of the configuration, and the types of their options."""
from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

Positive = Annotated[int, Field(gt=0)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Field(ge=0.0)]
AUTO = 0
"""What an `AutoPositive` option is while it says `auto`. `wavedash.memory.choice.resolved` replaces it by a number before
anything of a run is built."""


def _number(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    if value == "auto":
        return AUTO
    try:
        return read(value)
    except ValidationError:
        raise PydanticCustomError("auto_or_positive", "Input should be auto or a whole number greater than 0") from None


AutoPositive = Annotated[int, Field(gt=0), WrapValidator(_number),
                         PlainSerializer(lambda value: "auto" if value == AUTO else value, return_type=int | str)]
"""A number greater than 0, or `auto`"""


class Section(BaseModel):
    """A section of the configuration. Unknown keys and wrong types are refused; the docstring of an attribute documents it."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


Named = str | dict[str, dict[str, Any]]
"""A part by name (`kickoff`, or `my_module:MyClass`), or with options: `{no_touch: {seconds: 10}}`."""
