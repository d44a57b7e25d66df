"""Orderings of a box by name: scans, paths that fit a box, and every curve."""

import inspect
import math
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from sfc import checks
from sfc.any_curve import AnyCurve
from sfc.orderings.ordering import Ordering, checked_shape
from sfc.registry import (
    ORDERINGS,
    POINT_ORDERS,
    curve,
    curves,
    is_ordering,
    orderings,
    refuse_point_order,
)

SPARSE = 8  # above this ratio of the covering box's cells to the box's, the cells are sorted by rank instead


def ordering(order: str | AnyCurve, shape: Sequence[int] | np.ndarray, **options: Any) -> Ordering:
    """Make an ordering of a box.

    Args:
        order: one of `orderings(dim)`, or a `Curve`.
        shape: cells along each axis, each at least 1.
        options: `seed` for `random`, `tile` for `tiled`; those of `sfc.curve` for a curve by name.

    Returns:
        The ordering.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a shape or an option of another class.
        ValueError: an unknown name (lists those known), a bad shape, one that the ordering cannot fill, an
            option that the ordering does not take, or a box with an embedding cube of more than 64 bits.
    """
    shape = checked_shape(shape)
    if not isinstance(order, (str, AnyCurve)):
        known = ", ".join(orderings(len(shape)))
        raise checks.refuse_class("order", order, f"an sfc.AnyCurve, or one of {known}")
    if isinstance(order, str) and not is_ordering(order, len(shape)):
        known = ", ".join(orderings(len(shape)))
        if order in POINT_ORDERS:
            raise refuse_point_order("ordering", order, known)
        raise ValueError(
            f"unknown ordering {order!r} for a box in {len(shape)}D; known in {len(shape)}D: {known}"
        )
    if isinstance(order, str) and order in ORDERINGS:
        factory = ORDERINGS[order].build
        taken = list(inspect.signature(factory).parameters)[1:] if options else []
        if set(options) - set(taken):
            raise ValueError(
                f"ordering {order!r} does not take {sorted(options)}; allowed: {', '.join(taken) or 'none'}"
            )
        if math.prod(shape) >= 2**63:
            raise ValueError(
                f"box {shape}: {math.prod(shape)} cells; allowed: less than 2**63; take a smaller box"
            )
        made = Ordering(order, shape, *factory(shape, **options))
        made.remake = partial(ordering, order, shape, **options)
        return made
    if isinstance(order, str):
        order = curve(order, len(shape), **options)
    elif options:
        raise ValueError(
            f"curve {order.name!r} does not take {sorted(options)}; allowed: none with a `Curve`; "
            f"give them to the function that makes it"
        )
    if order.dim != len(shape):
        raise ValueError(
            f"curve {order.name!r} is {order.dim}D; the box {shape} is {len(shape)}D; allowed: a curve in "
            f"{len(shape)}D, such as {', '.join(curves(len(shape))) or 'one of your own'}"
        )
    return _embedded(order, shape)


def covering(order: str | AnyCurve, shape: Sequence[int] | np.ndarray, **options: Any) -> Ordering:
    """Make an ordering of any box, also of one that the order cannot fill.

    Such a box is ranked as part of the smallest larger box that the order can fill; the ranks then have gaps.

    Args:
        order: as for `ordering`.
        shape: cells along each axis, each at least 1.
        options: as for `ordering`.

    Returns:
        The ordering; that of `ordering` if it fills the shape.

    Raises:
        TypeError: as `ordering`.
        ValueError: as `ordering`, except for a shape that the order cannot fill.
    """
    shape = checked_shape(shape)
    entry = ORDERINGS.get(order) if isinstance(order, str) else None
    if entry is None or entry.covering is None or len(shape) not in entry.dims:
        return ordering(order, shape, **options)
    around = entry.covering(shape)
    whole = ordering(order, around, **options)
    if around == shape:
        return whole
    listed = whole if whole.size <= SPARSE * math.prod(shape) else None
    return Ordering(whole.name, shape, whole.rank, around=listed)


def _embedded(curve: AnyCurve, shape: tuple[int, ...]) -> Ordering:
    order = next(levels for levels in count() if curve.base**levels >= max(shape))
    if order > curve.max_order:
        raise ValueError(
            f"box {shape}: the cube of {curve.name!r} around it needs more than 64 bits; allowed: sides "
            f"up to {curve.side(curve.max_order)}; use a scan"
        )
    own = all(side == curve.base**order for side in shape) and math.prod(shape) < 2**63
    return Ordering(
        curve.name,
        shape,
        partial(curve.encode, order=order),
        partial(curve.decode, order=order) if own else None,
        (curve, order),
    )
