"""Ordinary differential equations: tableaux, solvers, and the adjoint method."""
