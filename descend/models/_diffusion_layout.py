"""What the files of diffusers' networks have in common."""

from __future__ import annotations

from typing import Annotated, Any

from descend.ranges import Range
from descend.weights.rules import Rule, rename

Bit = Annotated[int, Range(int, least=0, most=1)]
FIXED: dict[str, Any] = {
    "act_fn": "silu",
    "center_input_sample": False,
    "class_embed_type": None,
    "mid_block_scale_factor": 1,
    "resnet_time_scale_shift": "default",
    "time_embedding_dim": None,
    "time_embedding_type": "positional",
}
"""What both U-Nets compute in one way here."""
PARTS = ("conv_in", "time_embedding", "down_blocks", "mid_block", "up_blocks", "conv_norm_out", "conv_out")


class Levels:
    """Block names of a file, as levels that have attention or not: (plain, with attention), down and up."""

    def __init__(self, down: tuple[str, str], up: tuple[str, str]):
        self.down, self.up = down, up

    def read(self, values: dict[str, Any]) -> dict[str, Any]:
        """`attention` from down_block_types, which up_block_types must mirror."""
        if "down_block_types" not in values and "up_block_types" not in values:
            return values
        down, up = values.get("down_block_types", ()), list(values.get("up_block_types", ()))
        for name in down:
            if name not in self.down:
                raise ValueError(f"down_block_types: {name!r} is not supported, only {', '.join(self.down)}")
        attention = [name == self.down[1] for name in down]
        if up != [self.up[attends] for attends in reversed(attention)]:
            raise ValueError(f"up_block_types {up} do not mirror down_block_types {list(down)}, which is not supported")
        return values | {"attention": attention}

    def write(self, values: dict[str, Any]) -> dict[str, Any]:
        """The same the other way."""
        attention = values["attention"]
        names = {
            "down_block_types": [self.down[attends] for attends in attention],
            "up_block_types": [self.up[attends] for attends in reversed(attention)],
        }
        return {name: value for name, value in values.items() if name != "attention"} | names


def attention_keys() -> list[Rule]:
    """Attention of a map; the second names are those of files before 2023."""
    names = {"q": ("to_q", "query"), "k": ("to_k", "key"), "v": ("to_v", "value"), "out": ("to_out.0", "proj_attn")}
    return [
        rename(f"{{*}}.{name}.{p}", f"{{*}}.{there[i]}.{p}")
        for i in (0, 1)
        for name, there in names.items()
        for p in ("weight", "bias")
    ]
