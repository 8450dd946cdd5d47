"""Checks on the run's end, the examples and the answers: not finite, leak, constant predictions."""

from __future__ import annotations

from descend.diagnosis.signs import Finding, Signs

LEAK = 0.05  # a twentieth of the validation examples known from training makes the figure unreliable
TELLS = 0.99  # of a constant answer's errors vanish: the column is the target in other words
SAME = 0.99  # of all answers are one class
VARIED = 0.03  # and of the true classes more than this share are others


def detect_nan(signs: Signs) -> Finding | None:
    """The run ended with a loss that is not a number, or training examples hold such numbers."""
    if not signs.fault and not signs.spoilt:
        return None
    said = [f"step {signs.fault_step}: {signs.fault}"] if signs.fault else []
    if signs.spoilt:
        shown = ", ".join(map(str, signs.spoilt[:5])) + (", …" if len(signs.spoilt) > 5 else "")
        said.append(f"{len(signs.spoilt)} training example(s) hold NaN or infinity: {shown}")
        change = f"correct or delete record {signs.spoilt[0]}" + (" and the others" if len(signs.spoilt) > 1 else "")
    else:
        change = f"{signs.lower('optim.lr', 0.1)} and --clip 1.0"
    return Finding(
        "nan",
        "fault",
        "; ".join(said),
        "NaN + x = NaN and ∂L/∂θ = NaN: one such number in a batch spoils every weight in one step",
        change,
    )


def detect_leak(signs: Signs) -> Finding | None:
    """Validation examples that were trained on, or an input that is the answer."""
    said, change = [], []
    if signs.doubled is not None and signs.doubled > LEAK + 2 * signs.repeated:
        said.append(
            f"{signs.doubled:.1%} of the validation examples are training examples too (among themselves, "
            f"{signs.repeated:.1%} of the training examples are repeated)"
        )
        change.append("remove the duplicates before splitting the data")
    columns = [(name, share) for name, share in signs.columns if share > TELLS]
    if columns:
        name, share = max(columns, key=lambda pair: pair[1])
        said.append(f"the column {name!r} alone removes {share:.1%} of the errors of a constant answer")
        change.append(f"--data.drop {name}, unless it is known at prediction time")
    if not said:
        return None
    return Finding(
        "leak",
        "fault",
        "; ".join(said),
        "E[L_valid] = E[L_new] holds only if the validation examples had no part in choosing θ",
        "; ".join(change),
    )


def detect_constant_predictions(signs: Signs) -> Finding | None:
    """One answer for every example."""
    found = signs.answers
    if found is None or found.top < SAME or 1 - found.true_top < VARIED or found.count < 20:
        return None
    balance = "--balance.by weights, or --balance.by batches" if "balance.by" in signs.values else "weights in the loss"
    rare = found.true_top > 0.8
    return Finding(
        "constant-predictions",
        "fault",
        f"{found.top:.1%} of {found.count} validation answers are {found.label}; the most frequent true class has "
        f"{found.true_top:.1%}",
        "argmax_k p(k | x) = argmax_k p(x | k) f_k: a frequency f_k near 1 outweighs what x says"
        if rare
        else "min over constants c of Σ_i −log c_{y_i} is c = f: outputs that do not depend on x",
        balance if rare else f"another rate (descend lr-find {signs.name}), then a larger model",
    )
