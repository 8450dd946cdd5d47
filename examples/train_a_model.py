"""Train a model from Python, read its run, use it.

The recipe is LeNet-5 on handwritten digits; the data come with scikit-learn. Every flag of the command line is a value
here.
"""

import descend

STEPS = 300  # in the tests: 4

run, result = descend.train(
    "lenet-digits", {"steps": STEPS, "optim.lr": 2e-3, "batch": 64}, out="runs/digits", quiet=True
)
print(f"best validation accuracy {result.best:.3f} at step {result.best_step}")
print("the page of the run:", run.report)

logged = run.metrics()  # columns, a row for each step that was logged
print("losses of the first and the last step:", logged["loss"][0], logged["loss"][-1])

model = descend.load("runs/digits")  # the best checkpoint, a torch module
print(sum(p.numel() for p in model.parameters()), "parameters")
print(descend.evaluate("runs/digits")["test"])
