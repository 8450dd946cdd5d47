"""Fine-tune a public language model with LoRA.

Any folder that transformers or descend has saved will do: `BASE = "path/to/folder"`. Here a small GPT-2 is
trained first, so that the script runs by itself. What is saved is PEFT's adapter folder.
"""

import json
from pathlib import Path

import descend

STEPS = 200  # in the tests: 2

# A base: your folder instead of these two lines.
descend.train(
    "gpt2-chars",
    {"steps": STEPS, "model.width": 64, "model.depth": 2, "model.context": 64, "data.path": __file__},
    out="runs/base", quiet=True,
)  # fmt: skip
BASE = "runs/base"

# Your conversations, one JSON object on each line.
pairs = [(a, b) for a in range(10) for b in range(10)]
lines = [{"prompt": f"{a} + {b} = ?", "completion": str(a + b)} for a, b in pairs]
Path("chats.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

run, result = descend.train(
    "lora-tasks",
    {"data.path": "chats.jsonl", "start.path": BASE, "steps": STEPS, "batch": 8, "eval_every": STEPS,
     "adapter.rank": 4, "adapter.targets": ("qkv",)},
    out="runs/sums", quiet=True,
)  # fmt: skip
print(sorted(path.name for path in Path("runs/sums/checkpoints/best").iterdir()))

answer = descend.chat("runs/sums", [{"role": "user", "content": "2 + 3 = ?"}], tokens=8, temperature=0)
print(answer)

print(descend.merge("runs/sums", "merged"))  # a plain model folder, without an adapter
