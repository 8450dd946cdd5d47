"""Look inside a trained network: layers, filters, maps, and where it looked.

The functions of `descend.interpret` take any torch module; the layers go by the names that `named_modules` gives.
"""

import torch
from sklearn.datasets import load_digits

import descend
from descend.interpret.filters import read_filters
from descend.interpret.grad_cam import grad_cam
from descend.interpret.layers import feature_maps, list_convolutions

STEPS = 200  # in the tests: 3

descend.train("lenet-digits", {"steps": STEPS}, out="runs/cnn", quiet=True)
model = descend.load("runs/cnn").eval()
x = torch.tensor(load_digits().images[:4], dtype=torch.float32)[:, None] / 16
x = torch.nn.functional.interpolate(x, size=model.config.image[1:])  # the size that the network was trained with

print(descend.layers(model, x))  # shapes, parameters, FLOPs, receptive fields

first = list_convolutions(model)[0]
print("filters of", first, tuple(read_filters(model, first).shape))
print("what they make of the images", tuple(feature_maps(model, first, x).shape))

heat = grad_cam(model, x)  # what speaks for the class that the network names
print("where it looked, image 0:\n", (heat[0] / heat[0].amax().clamp(min=1e-9) * 9).round().int())
