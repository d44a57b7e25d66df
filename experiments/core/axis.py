"""Annotation of the swept fields of a Config."""

from typing import TYPE_CHECKING, Any, TypeVar, Union

T = TypeVar("T")

if TYPE_CHECKING:
    Axis = Union[T, Any]  # noqa: UP007 - an alias with a type variable; a case holds one T, a sweep a tuple
else:

    class Axis:
        """Annotation `tuple[T, ...]` of a field that is swept: `Axis[T]`; a case holds one of its values."""

        def __class_getitem__(cls, kind: type) -> Any:
            return tuple[kind, ...]
