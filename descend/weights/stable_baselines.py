"""Policies of Stable-Baselines3: the weights of its .zip, and ours under its names.

    theirs (A2C, PPO)                                    ours
    mlp_extractor.policy_net.{2k}, action_net            actor.hidden.{k}, actor.out
    mlp_extractor.value_net.{2k}, value_net              critic.hidden.{k}, critic.out
    log_std                                              log_sigma
    theirs (DQN)                                         ours
    q_net.q_net.{2k}, and q_net_target the same          hidden.{k}, out

The zip holds `policy.pth`, which torch reads as tensors alone, and `data`, JSON whose pickled parts are never opened.
An MlpPolicy of equal layers is understood: tanh with an actor and a critic apart (A2C, PPO), relu (DQN).
"""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake

POLICY, DATA = "policy.pth", "data"
MOST = 2**31  # bytes of a policy
HIDDEN = {"actor.hidden": "mlp_extractor.policy_net", "critic.hidden": "mlp_extractor.value_net"}
HEADS = {"actor.out": "action_net", "critic.out": "value_net"}
USED = {"actor": "Tanh", "q": "ReLU"}


class Policy(NamedTuple):
    """What a zip holds, under our names."""

    family: str
    """The file of the model: actor_critic, gaussian_actor_critic or q_network."""
    sizes: dict[str, int]
    """The fields of its config."""
    tensors: dict[str, Tensor]


def read_policy(path: str | Path) -> Policy:
    """The policy of a .zip that Stable-Baselines3 saved."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as file:
            if file.getinfo(POLICY).file_size > MOST:
                raise Mistake(f"{path}: {POLICY} is larger than a policy of 2 GB")
            stored, facts = file.read(POLICY), json.loads(file.read(DATA))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's words about pickles that it then refuses
            tensors = torch.load(io.BytesIO(stored), map_location="cpu", weights_only=True)
    except Mistake:
        raise
    except KeyError:
        raise Mistake(f"{path} holds no {POLICY}; give a .zip that Stable-Baselines3 saved") from None
    except OSError as error:
        raise Mistake(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # a damaged zip, JSON that is none, a pickle of anything but tensors
        first = str(error).partition("\n")[0]
        raise Mistake(f"{path} cannot be read as a model of Stable-Baselines3: {first[:200]}") from None
    if not (isinstance(tensors, Mapping) and all(isinstance(t, Tensor) for t in tensors.values())):
        raise Mistake(f"{path}: {POLICY} is not a table of tensors")
    ours = rename_to_ours(tensors, str(path))
    check_activation(facts, "q" if "out.weight" in ours else "actor", str(path))
    return Policy(*measure(ours, str(path)), ours)


def rename_to_ours(tensors: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    """Their tensors by our names; a name that no rule knows is a mistake."""
    back = {theirs: our for our, theirs in {**HIDDEN, **HEADS}.items()}
    last = max(
        (int(found[1]) for name in tensors if (found := re.fullmatch(r"q_net\.q_net\.(\d+)\.weight", name))), default=-1
    )
    ours: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.startswith("q_net_target."):
            continue
        stem, _, kind = name.rpartition(".")
        place = stem.rpartition(".")
        if name == "log_std":
            ours["log_sigma"] = tensor
        elif stem in back:
            ours[f"{back[stem]}.{kind}"] = tensor
        elif place[0] in back and place[2].isdecimal():
            ours[f"{back[place[0]]}.{int(place[2]) // 2}.{kind}"] = tensor
        elif place[0] == "q_net.q_net" and place[2].isdecimal():
            ours[f"out.{kind}" if int(place[2]) == last else f"hidden.{int(place[2]) // 2}.{kind}"] = tensor
        else:
            raise Mistake(f"{where}: {name} is of no MlpPolicy that is known here (A2C, PPO, DQN)")
    return ours


def measure(ours: Mapping[str, Tensor], where: str) -> tuple[str, dict[str, int]]:
    """The family and the sizes of the model that has these tensors."""
    q = "out.weight" in ours
    towers = [""] if q else ["actor.", "critic."]
    shapes = [
        [t.shape for n, t in ours.items() if re.fullmatch(rf"{re.escape(tower)}hidden\.\d+\.weight", n)]
        for tower in towers
    ]
    head = ours.get("out.weight" if q else "actor.out.weight")
    if head is None or not all(shapes) or any(shape[0] != head.shape[1] for tower in shapes for shape in tower):
        raise Mistake(
            f"{where}: layers of {[[s[0] for s in t] for t in shapes]} units; all of them must be equally wide"
        )
    if len({len(tower) for tower in shapes}) > 1:
        raise Mistake(
            f"{where}: the actor has {len(shapes[0])} hidden layers and the critic {len(shapes[1])}; not the same"
        )
    family = "q_network" if q else "gaussian_actor_critic" if "log_sigma" in ours else "actor_critic"
    first = shapes[0][0]
    return family, {"observations": first[1], "actions": head.shape[0], "width": first[0], "depth": len(shapes[0])}


def check_activation(facts: Any, kind: str, where: str) -> None:
    """Refuse another activation than ours; the settings are told as text beside their pickled form."""
    settings = facts.get("policy_kwargs") if isinstance(facts, dict) else None
    told = str(settings.get("activation_fn", "")) if isinstance(settings, dict) else ""
    if told and not re.search(rf"\.{USED[kind]}\b", told):
        raise Mistake(f"{where}: the activation is {told}; policies here have {USED[kind]}")


def rename_to_theirs(ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our state dict by the names of Stable-Baselines3: for `model.policy.load_state_dict(..)` there."""
    depth = 1 + max(
        (int(found[1]) for name in ours if (found := re.fullmatch(r"hidden\.(\d+)\.weight", name))), default=-1
    )
    theirs: dict[str, Tensor] = {}
    for name, tensor in ours.items():
        stem, _, kind = name.rpartition(".")
        place = stem.rpartition(".")
        if name == "log_sigma":
            theirs["log_std"] = tensor
        elif stem in HEADS:
            theirs[f"{HEADS[stem]}.{kind}"] = tensor
        elif place[0] in HIDDEN:
            theirs[f"{HIDDEN[place[0]]}.{2 * int(place[2])}.{kind}"] = tensor
        elif stem == "out" or place[0] == "hidden":
            layer = 2 * (depth if stem == "out" else int(place[2]))
            for net in ("q_net", "q_net_target"):
                theirs[f"{net}.q_net.{layer}.{kind}"] = tensor
        else:
            raise Mistake(f"{name} is of no policy that Stable-Baselines3 has; give an actor-critic or a Q-network")
    return theirs


def write_policy(ours: Mapping[str, Tensor], template: str | Path, out: str | Path) -> None:
    """A zip of Stable-Baselines3 with our weights: `template` is one of its own with networks of the same sizes."""
    old = read_policy(template)
    if {n: t.shape for n, t in old.tensors.items()} != {n: t.shape for n, t in ours.items()}:
        raise Mistake(f"{template} holds networks of other sizes; save one with the same net_arch and environment")
    stored = io.BytesIO()
    torch.save({name: tensor.detach().cpu() for name, tensor in rename_to_theirs(ours).items()}, stored)
    with zipfile.ZipFile(template) as source, zipfile.ZipFile(out, "w") as target:
        for entry in source.infolist():
            target.writestr(entry, stored.getvalue() if entry.filename == POLICY else source.read(entry))
