"""Images, texts, molecules and people as graphs."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from rdkit import Chem

from descend.data.graphs.converters import (
    VALENCES,
    convert_image,
    convert_molecule,
    convert_pairs,
    convert_scenes,
    convert_text,
)
from descend.data.graphs.exchange import to_networkx
from descend.data.graphs.karate import LEADERS, SIDES, load_karate
from descend.data.graphs.smiles import ELEMENTS, read_smiles
from descend.data.graphs.source import GraphSource
from descend.errors import Mistake
from descend.ops.graph.batches import read_graph
from tests.close import close

CAFFEINE = "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"


@pytest.mark.system("data-to-graph-converters")
@pytest.mark.system("data-to-graph-converters", "images")
@pytest.mark.parametrize(("h", "w"), [(5, 5), (1, 4), (3, 1), (2, 7), (1, 1)])
def test_pixels_that_touch_are_linked(h: int, w: int) -> None:
    """The moves of a king on a board."""
    image = torch.rand(3, h, w)
    graph = convert_image(image)
    linked = set(map(tuple, graph.pairs.tolist()))
    places = [(r, c) for r in range(h) for c in range(w)]
    wanted = {
        (i, j)
        for i, (r, c) in enumerate(places)
        for j, (s, d) in enumerate(places)
        if i < j and max(abs(r - s), abs(c - d)) == 1
    }
    assert linked == wanted
    close(graph.nodes, torch.stack([image[:, r, c] for r, c in places]))
    with pytest.raises(Mistake, match="three axes"):
        convert_image(torch.zeros(4, 4))


@pytest.mark.system("data-to-graph-converters", "text")
def test_words_are_a_path() -> None:
    words = ["the", "dog", "saw", "the", "cat"]
    graph, known = convert_text(words)
    assert known == ("the", "dog", "saw", "cat")
    assert [known[int(k)] for k in graph.nodes.flatten()] == words
    a = read_graph(graph.batch()).links.adjacency()
    assert torch.equal(a, torch.ones(4).diag(1).long() + torch.ones(4).diag(-1).long())
    onward = convert_text(words, directed=True)[0]
    assert torch.equal(read_graph(onward.batch()).links.adjacency().T, torch.ones(4).diag(1).long())
    assert len(convert_text(["alone"])[0].edges) == 0


@pytest.mark.system("data-to-graph-converters", "molecules")
def test_caffeine_of_smiles() -> None:
    """C8H10N4O2: 14 heavy atoms and 15 bonds, 24 atoms with hydrogen; no atom has more bonds than its valence."""
    heavy, whole = read_smiles(CAFFEINE), read_smiles(CAFFEINE, hydrogens=True)
    assert (len(heavy), len(heavy.pairs)) == (14, 15)
    assert (len(whole), len(whole.pairs)) == (24, 25)
    counts = dict(zip(ELEMENTS, whole.nodes[:, : len(ELEMENTS)].sum(dim=0).int().tolist(), strict=False))
    assert {name: k for name, k in counts.items() if k} == {"H": 10, "C": 8, "N": 4, "O": 2}
    close(heavy.nodes[:, -2].sum(), torch.tensor(10.0))
    a = read_graph(whole.batch()).links.adjacency()
    assert torch.equal(a, a.T)
    molecule = Chem.AddHs(Chem.MolFromSmiles(CAFFEINE))
    Chem.Kekulize(molecule, clearAromaticFlags=True)
    theirs = {(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()}
    assert {tuple(sorted(pair)) for pair in theirs} == set(map(tuple, whole.pairs.tolist()))
    atoms = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx(), int(b.GetBondTypeAsDouble())) for b in molecule.GetBonds()]
    ours = convert_molecule(atoms, bonds)
    assert torch.equal(ours.edges, whole.edges)
    used = torch.zeros(24).index_add(0, ours.edges[:, 1], ours.edge_attributes[:, 0])
    assert used.tolist() == [VALENCES[atom] for atom in atoms]
    with pytest.raises(Mistake, match=r"atom 0, O, has 3 bonds, at most 2"):
        convert_molecule(["O", "C", "H"], [(0, 1, 2), (0, 2, 1)])


@pytest.mark.system("data-to-graph-converters", "molecules")
def test_molecules_of_different_sizes_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "molecules.csv"
    rows = {CAFFEINE: -0.1, "C": 1.1, "CCO": -0.3, "c1ccccc1": 2.1, "CC(=O)O": -0.2, "[Na+].[Cl-]": 0.0, "CCCC": 2.9}
    path.write_text("smiles,logp\n" + "".join(f"{text},{y}\n" for text, y in rows.items()))
    splits = GraphSource(str(path), valid=0.2, test=0.2).read()
    assert splits.targets == ("logp",)
    assert {*splits.train.names, *splits.valid.names, *splits.test.names} == set(rows)
    assert splits.train.widths == (len(ELEMENTS) + 4, 4, 0)
    for part in (splits.train, splits.valid, splits.test):
        for i, text in enumerate(part.names):
            assert len(part.one(i)) == Chem.MolFromSmiles(text).GetNumAtoms()
            assert float(part.y[i, 0]) == pytest.approx(rows[text])
    path.write_text("smiles,toxic,mass\nCCO,yes,46\nC,no,16\n")
    found = GraphSource(str(path), target="toxic").load()
    assert (found.labels, found.graphs.y.tolist()) == (("no", "yes"), [1, 0])
    for text, why in (
        ("smiles,y\nCCO,1\nC(C,2\n", r"molecules\.csv, line 3: 'C\(C' is no SMILES"),
        ("smiles,y\nC(C)(C)(C)(C)C,1\n", r"line 2: .* valences are wrong"),
        ("smiles,y\nCCO,1.5\nC,\n", r"molecules\.csv, line 3: no 'y'"),
        ("name,y\nCCO,1\n", "no column 'smiles'"),
        ("smiles,a,b\nCCO,1,2\n", "--data.target: name the column"),
    ):
        path.write_text(text)
        with pytest.raises(Mistake, match=why):
            GraphSource(str(path)).read()
    path.write_text("smiles,y\nCCO,1.5\nC,high\n")
    with pytest.raises(Mistake, match=r"line 3: 'y' is 'high'"):
        GraphSource(str(path), predict="numbers").read()


def test_without_rdkit_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "rdkit":
            raise ImportError(name)
        return imported(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(Mistake, match=r"pip install 'descend\[molecules\]'"):
        read_smiles("C")


@pytest.mark.system("data-to-graph-converters", "social")
def test_people_who_meet() -> None:
    casts = [["Othello", "Iago"], ["Iago", "Roderigo", "Brabantio"], ["Othello", "Iago", "Brabantio"], ["Clown"]]
    graph, names = convert_scenes(casts)
    met = {
        frozenset((names[a], names[b])): int(k) for (a, b), k in zip(graph.pairs, graph.pair_attributes, strict=True)
    }
    assert met == {
        frozenset(("Othello", "Iago")): 2,
        frozenset(("Iago", "Roderigo")): 1,
        frozenset(("Iago", "Brabantio")): 2,
        frozenset(("Roderigo", "Brabantio")): 1,
        frozenset(("Othello", "Brabantio")): 1,
    }
    assert names[-1] == "Clown"
    pairs, people = convert_pairs([("a", "b"), ("b", "a"), ("b", "c")])
    assert people == ("a", "b", "c")
    assert pairs.pairs.tolist() == [[0, 1], [1, 2]]
    assert pairs.pair_attributes.flatten().tolist() == [2, 1]


@pytest.mark.system("data-to-graph-converters", "social")
def test_the_karate_club_is_there() -> None:
    karate, theirs = load_karate(), nx.karate_club_graph()
    assert nx.utils.graphs_equal(nx.Graph(to_networkx(karate).edges), nx.Graph(theirs.edges))
    assert [SIDES[k] for k in karate.y.tolist()] == [theirs.nodes[i]["club"] for i in theirs]
    assert karate.parts["train"].tolist() == list(LEADERS)
    assert sorted(torch.cat(list(karate.parts.values())).tolist()) == list(range(34))
