"""Scenes of an arena: their relations follow from who is there and where."""

from __future__ import annotations

import torch

from descend.data.toys.arena import KINDS, LOOKS, RELATIONS, WIDTH, draw_arena

MAT, FIGHTER, JUDGE, COACH, SPECTATOR = range(len(KINDS))


def test_relations() -> None:
    scenes = draw_arena(40, seed=3)
    assert scenes.nodes.shape[1] == WIDTH
    assert torch.equal(scenes.relation, scenes.relation.T)
    assert not scenes.relation[scenes.owner[:, None] != scenes.owner].any()
    expected = {
        "fights": {(FIGHTER, FIGHTER)},
        "judges": {(JUDGE, FIGHTER), (FIGHTER, JUDGE)},
        "stands on": {(kind, MAT) for kind in (FIGHTER, JUDGE)} | {(MAT, kind) for kind in (FIGHTER, JUDGE)},
        "sits beside": {(SPECTATOR, SPECTATOR)},
    }
    for name, kinds in expected.items():
        u, v = (scenes.relation == RELATIONS.index(name)).nonzero().T
        assert set(zip(scenes.kinds[u].tolist(), scenes.kinds[v].tolist(), strict=True)) == kinds
    fights = (scenes.relation == 1).sum(1)
    assert torch.equal(fights, (scenes.kinds == FIGHTER).long())
    sizes = scenes.owner.bincount()
    mats = torch.bincount(scenes.owner[scenes.kinds == MAT])
    assert set(mats.tolist()) == {1, 2}
    assert ((sizes - 6 * mats) % 2 == 0).all()


def test_a_scene_belongs_to_its_key_and_kinds_can_be_seen() -> None:
    few, many = draw_arena(3, seed=1), draw_arena(5, seed=1)
    assert torch.equal(few.nodes, many.nodes[: len(few.nodes)])
    scenes = draw_arena(60)
    seen = (scenes.nodes[:, :LOOKS].argmax(1) == scenes.kinds).double().mean()
    assert 0.8 < float(seen) < 1
