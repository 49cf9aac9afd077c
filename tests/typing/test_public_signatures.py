"""The public interface is fully annotated, and `Any` is used only with a reason."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass

import ratings_ledger as rl

JSON = "plain data as `--format json` prints it; which members it has depends on the result"
RECORDED = "a game or an event as it was recorded: JSON, whose members depend on its type and its game"
# by class and member: the reason for `Any`
REASONS = {
    "Result.model_dump": JSON,
    "Rows.model_dump": JSON,
    "RecordedGame.data": RECORDED,
    "RecordedEvent.event": RECORDED,
    "GameTimeline.data": RECORDED,
    "OtherResult.data": RECORDED,
    "Change.game": RECORDED,
    "PlayedGame.game": RECORDED,
    "StatementLine.game": RECORDED,
    "RulesetState.data": "a ruleset as it was published: JSON, whose parameters depend on its rule",
}


def list_annotations() -> Iterator[tuple[str, object]]:
    """Yield every annotation of the public interface with the name of its function or member."""
    for public in (getattr(rl, name) for name in rl.__all__):
        if inspect.isfunction(public):
            yield from list_function_annotations(public.__name__, public)
        elif inspect.isclass(public):
            for kind in public.__mro__:
                if kind.__module__.startswith("ratings_ledger"):
                    yield from list_class_annotations(kind)


def list_class_annotations(kind: type) -> Iterator[tuple[str, object]]:
    """Yield the annotations of a class's own public members."""
    for name, annotation in inspect.get_annotations(kind).items():
        if not name.startswith("_"):
            yield f"{kind.__name__}.{name}", annotation
    for name, member in [*vars(kind).items()]:  # a copy, because pydantic adds members on access
        function = getattr(member, "fget", None) or getattr(member, "__func__", None) or getattr(member, "func", member)
        is_generated = name == "__init__" and is_dataclass(kind)
        if inspect.isfunction(function) and not is_generated and (name == "__init__" or not name.startswith("_")):
            yield from list_function_annotations(f"{kind.__name__}.{name}", function)


def list_function_annotations(name: str, function: object) -> Iterator[tuple[str, object]]:
    """Yield the annotations of a function's parameters and of its return value."""
    assert inspect.isfunction(function)
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.name not in ("self", "cls"):
            yield name, parameter.annotation
    yield name, signature.return_annotation


def test_every_any_has_a_reason() -> None:
    """Exactly the members with `Any` in their annotations are listed with a reason."""
    texts = [
        (name, annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))
        for name, annotation in list_annotations()
    ]
    assert len(texts) > 500
    assert {name for name, text in texts if re.search(r"\bAny\b", text)} == REASONS.keys()


def test_public_interface_is_annotated() -> None:
    """Every parameter and every return value of the public interface is annotated."""
    assert [name for name, annotation in list_annotations() if annotation is inspect.Signature.empty] == []
