"""The options of a kind of one's own: `env.kwargs` read into the model that the kind declares."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from wavedash.config_file import complaint
from wavedash.envs.errors import EnvError


def read_options(model: type[BaseModel] | None, kwargs: Mapping[str, Any]) -> BaseModel | None:
    """None for a kind that declares no options; it then takes none. EnvError: lists all that is wrong."""
    if model is None:
        if kwargs:
            raise EnvError(f"this environment takes no options: leave env.kwargs empty, not {dict(kwargs)}")
        return None
    try:
        return model.model_validate(dict(kwargs))
    except ValidationError as error:
        problems = [complaint(detail, model, ("env", "kwargs")) for detail in error.errors(include_url=False)]
        raise EnvError("\n".join(problems)) from None
