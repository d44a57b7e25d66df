"""Pictures of orders: paths in the plane, turtles and their boxes, tubes in space, heat maps.

Everything here takes arrays and axes and knows no experiment, so that a figure of one can be part of another.
"""
