"""Sources of graphs: parts, attributes of nodes, facts, and graphs that a trained model never saw."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from descend.data.graphs import imports
from descend.data.graphs.attributed import link
from descend.data.graphs.converters import convert_text
from descend.data.graphs.edge_lists import write_graph_folder
from descend.data.graphs.features import MOST, NodeFeatures, describe_nodes
from descend.data.graphs.imports import KINDS, find_sources, load_imports, read_sources
from descend.data.graphs.json_graphs import write_graph_json
from descend.data.graphs.node_graph import NodeGraph, number_classes
from descend.data.graphs.source import GraphSource, NodeSource
from descend.errors import Mistake
from descend.ranges import check
from tests.close import close


@pytest.mark.parametrize("name", ["karate", "planted"])
def test_every_labelled_node_is_in_one_part(name: str) -> None:
    splits = NodeSource(embedded=name, size=200).read()  # type: ignore[arg-type]
    rows = torch.cat([splits.train, splits.valid, splits.test])
    assert rows.sort().values.tolist() == (splits.y >= 0).nonzero().flatten().tolist()
    for part in ("train", "valid", "test"):
        y = splits.batch(part)["y"]
        assert torch.equal((y >= 0).nonzero().flatten(), splits.rows(part).sort().values)
        assert torch.equal(y[splits.rows(part)], splits.y[splits.rows(part)])
    assert splits.facts["nodes"] == len(splits.names)


def test_few_nodes_of_each_class_teach() -> None:
    splits = NodeSource(embedded="planted", size=200, per_class=3).read()
    assert splits.y[splits.train].bincount().tolist() == [3] * 4
    whole = NodeSource(embedded="planted", size=200).read()
    assert set(splits.train.tolist()) < set(whole.train.tolist())
    assert torch.equal(splits.test, whole.test)


def test_attributes_stand_for_what_is_missing() -> None:
    karate = NodeSource().read()
    assert torch.equal(karate.graph.nodes, torch.eye(34))
    degree = NodeSource(features="degree").read().graph.nodes
    close(degree[[0, 33]], torch.tensor([[17.0, 1], [18, 1]]).log() * torch.tensor([1, 0]) + torch.tensor([0, 1]))
    large = link(torch.zeros(MOST + 1, 0), torch.tensor([[0, 1]]))
    assert NodeFeatures.fit(large, "auto", "none").kind == "degree"
    with pytest.raises(Mistake, match=r"--data\.features identity: 20,001 nodes are too many"):
        NodeFeatures.fit(link(torch.zeros(20_001, 0), torch.tensor([[0, 1]])), "identity", "none")
    with pytest.raises(Mistake, match=r"--data\.features own"):
        NodeSource(features="own").read()
    check(NodeSource(), "data")
    check(GraphSource(), "data")


@pytest.mark.parametrize("scale", ["none", "rows", "columns"])
def test_scaling_goes_with_the_model(tmp_path: Path, scale: str) -> None:
    x = torch.tensor([[1.0, 3, 5], [0, 0, 5], [2, 2, 5]])
    graph = link(x, torch.tensor([[0, 1]]))
    features = NodeFeatures.fit(graph, "auto", scale, ("a", "b"), ("p", "q", "r"))  # type: ignore[arg-type]
    wanted = {
        "none": x,
        "rows": torch.tensor([[1 / 9, 1 / 3, 5 / 9], [0, 0, 1], [2 / 9, 2 / 9, 5 / 9]]),
        "columns": (x - x.mean(0)) / torch.cat([x[:, :2].std(0, correction=0), torch.ones(1)]),
    }[scale]
    close(features(graph), wanted)
    features.save(tmp_path)
    again = NodeFeatures.read(tmp_path)
    assert again == features
    assert torch.equal(again(graph), features(graph))
    with pytest.raises(Mistake, match="has 1 node attributes, the model was trained on 3"):
        again(convert_text(["a", "b"])[0])


def test_rows_without_any_attribute_stay_zero() -> None:
    graph = link(torch.tensor([[0.0, 0], [2, 2]]), torch.tensor([[0, 1]]))
    assert NodeFeatures.fit(graph, "own", "rows")(graph).tolist() == [[0, 0], [0.5, 0.5]]


def test_another_graph_by_the_classes_that_are_known(tmp_path: Path) -> None:
    source = NodeSource(embedded="planted", size=100, scale="columns")
    features = source.fit(source.load())
    x = torch.randn(4, 16)
    other = NodeGraph(
        link(x, torch.tensor([[0, 1], [1, 2], [2, 3]])),
        torch.tensor([1, 0, -1, 2]),
        ("group 2", "group 3", "unheard of"),
        tuple("abcd"),
    )
    write_graph_json(other, tmp_path / "other.json")
    found = source.read_unseen(str(tmp_path / "other.json"), features)
    assert found.y.tolist() == [3, 2, -1, -1]
    assert found.labels == ("group 0", "group 1", "group 2", "group 3")
    close(found.graph.nodes, (x - torch.tensor(features.mean)) / torch.tensor(features.std))
    write_graph_folder(other, tmp_path)
    assert torch.equal(source.read_unseen(str(tmp_path), features).graph.nodes, found.graph.nodes)
    identity = NodeSource()
    with pytest.raises(Mistake, match="has 4 nodes, the model was trained on 34"):
        identity.read_unseen(str(tmp_path / "other.json"), identity.fit(identity.load()))


def test_classes_in_order() -> None:
    y, labels = number_classes(["10", "2", "", "10"])
    assert (y.tolist(), labels) == ([1, 0, -1, 1], ("2", "10"))
    assert number_classes(["b", "a"])[1] == ("a", "b")


def test_a_graph_without_classes_teaches_nothing(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,x\na,1\nb,2\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    with pytest.raises(Mistake, match="no node has a class"):
        NodeSource(str(tmp_path)).read()
    (tmp_path / "nodes.csv").write_text("id,x,label\na,1,r\nb,2,s\n")
    with pytest.raises(Mistake, match="no node is left for the"):
        NodeSource(str(tmp_path)).read()
    with pytest.raises(Mistake, match="at least 40"):
        NodeSource(embedded="planted", size=5).read()


def test_generated_graphs_are_cut_by_class() -> None:
    rings = GraphSource(graphs=200).read()
    assert [len(part) for part in (rings.train, rings.valid, rings.test)] == pytest.approx([140, 30, 30], abs=3)
    assert rings.labels
    assert rings.facts["degree"].startswith("1 to 3, mean 2.")
    assert not rings.targets
    molecules = GraphSource(embedded="molecules", graphs=50).read()
    assert molecules.targets == ("property",)
    assert molecules.train.y.shape[1] == 1
    names = {name for part in (molecules.train, molecules.valid, molecules.test) for name in part.names}
    assert len(names) == 50
    with pytest.raises(Mistake, match=r"give a \.jsonl"):
        GraphSource(__file__).read()


def test_imports_are_read_from_statements(tmp_path: Path) -> None:
    """Absolute and relative, inside functions, of names and of modules; nothing is executed."""
    (tmp_path / "pack" / "inner").mkdir(parents=True)
    (tmp_path / "pack" / "tests").mkdir()
    for name, text in {
        "alone.py": "import pack.one as p\nimport sys\nraise SystemExit",
        "pack/__init__.py": "from . import one\nfrom .inner import deep\n",
        "pack/one.py": "def f():\n    from pack.inner.deep import thing\n    import alone, pack\n",
        "pack/inner/__init__.py": "",
        "pack/inner/deep.py": "from ..one import f\nfrom .. import inner\nfrom ... import nothing\n",
        "pack/tests/test_one.py": "import alone\n",
    }.items():
        (tmp_path / name).write_text(text)
    sources = find_sources(tmp_path)
    assert sorted(sources) == ["alone", "pack", "pack.inner", "pack.inner.deep", "pack.one"]
    found = read_sources(sources)
    assert sorted(map(tuple, found["imports"])) == [
        ("alone", "pack.one"),
        ("pack", "pack.inner.deep"),
        ("pack", "pack.one"),
        ("pack.inner.deep", "pack.inner"),
        ("pack.inner.deep", "pack.one"),
        ("pack.one", "alone"),
        ("pack.one", "pack"),
        ("pack.one", "pack.inner.deep"),
    ]
    counts = dict(zip(found["names"], found["counts"], strict=True))
    assert counts["pack.one"][KINDS.index("FunctionDef")] == 1
    assert counts["alone"][KINDS.index("Import")] == 2
    (tmp_path / "alone.py").write_text("def (")
    with pytest.raises(Mistake, match=r"alone\.py is no source"):
        read_sources(sources)


def test_the_graph_of_the_library_tells_packages_by_their_links() -> None:
    found = load_imports()
    n = {name: i for i, name in enumerate(found.names)}
    assert [n["asyncio.base_events"], n["asyncio.events"]] in found.graph.edges.tolist()
    assert found.labels[found.y[n["email.message"]]] == "email"
    assert found.y[n["ast"]] == -1
    assert len(found.labels) >= 5
    ends = found.y[found.graph.edges]
    known = (ends >= 0).all(dim=1)
    assert (ends[known][:, 0] == ends[known][:, 1]).double().mean() > 0.7
    assert describe_nodes(found.graph, "own").shape[1] == len(KINDS)


def test_what_was_read_of_the_library_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as no source changes; a damaged copy is written anew."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    library = tmp_path / "library"
    library.mkdir()
    (library / "a.py").write_text("import b\n")
    (library / "b.py").write_text("x = 1\n")
    found = imports.read_kept(find_sources(library))
    assert found["imports"] == [["a", "b"]]
    [kept] = (tmp_path / "cache" / "descend" / "graphs").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(imports, "read_sources", lambda sources: pytest.fail("it was read again"))
        assert imports.read_kept(find_sources(library)) == found
    for damage in ("", "[]", '{"names": 3}'):
        kept.write_text(damage)
        assert imports.read_kept(find_sources(library)) == found
    (library / "b.py").write_text("import a\n")
    assert imports.read_kept(find_sources(library))["imports"] == [["a", "b"], ["b", "a"]]
