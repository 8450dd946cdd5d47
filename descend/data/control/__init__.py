"""Environments, memories and demonstrations. The arm is an environment of gymnasium's registry, like any other."""

import gymnasium

ARM, SEEN_ARM = "descend/PickPlace-v0", "descend/SeenPickPlace-v0"

gymnasium.register(ARM, entry_point="descend.data.control.arm_env:PickPlace")
gymnasium.register(SEEN_ARM, entry_point="descend.data.control.arm_env:SeenPickPlace")
