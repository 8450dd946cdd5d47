"""Layers of graph networks. Node layers are `layer(x, links)`, full blocks `block(graph)`; links never change."""
