"""A computation, node by node: what ran, its value, its local Jacobian, its tangent and its adjoint."""
