"""Section: the base of every section of the configuration, and the types of their options."""
from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(gt=0)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Field(ge=0.0)]


class Section(BaseModel):
    """A section of the configuration. Unknown keys and wrong types are refused; the docstring of an attribute documents it."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


Named = str | dict[str, dict[str, Any]]
"""A part by name (`kickoff`, or `my_module:MyClass`), or with options: `{no_touch: {seconds: 10}}`."""
