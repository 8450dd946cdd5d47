from __future__ import annotations

from importlib import import_module

import pytest
import torch

from descend.models import model_class, names
from descend.theory.transformer_variants import KINDS, VARIANTS, Variant, of_kind

SLUG = "transformer-variant-registry"
HERE = [v for v in VARIANTS if v.file in names()]


@pytest.mark.system("transformer-variant-registry", "built")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("variant", HERE, ids=lambda v: v.name)
def test_every_name_can_be_built(variant: Variant) -> None:
    file = import_module(f"descend.models.{variant.file}")
    with torch.device("meta"):
        model = model_class(variant.file)(file.TINY)
    assert sum(p.numel() for p in model.parameters()) > 0
    assert (file.__doc__ or "").strip()


@pytest.mark.system("transformer-variant-registry", "table")
@pytest.mark.system(SLUG)
def test_the_table_of_the_book() -> None:
    names_of_the_book = "Transformer,BERT,GPT,RoBERTa,Longformer,T5,ViT,PaLM,LLaMA,Mixtral"
    assert ",".join(v.name for v in VARIANTS) == names_of_the_book
    assert [v.year for v in VARIANTS] == sorted(v.year for v in VARIANTS)
    assert {v.name for v in VARIANTS} - {v.name for v in HERE} <= {"ViT"}, "all but the vision model are here"
    assert {v.kind for v in VARIANTS} == set(KINDS)


@pytest.mark.system("transformer-variant-registry", "years")
@pytest.mark.system(SLUG)
def test_years_of_publication() -> None:
    """MF prints 2019, 2020, 2021 and 2024 for these."""
    moved = {v.name: v.first for v in VARIANTS if v.first != v.year}
    assert moved == {"Longformer": 2020, "T5": 2019, "ViT": 2020, "Mixtral": 2023}


@pytest.mark.system("transformer-variant-registry", "table")
@pytest.mark.system(SLUG)
def test_by_kind() -> None:
    assert [v.name for v in of_kind("decoder")] == ["GPT", "PaLM", "LLaMA"]
    assert [v.name for v in of_kind("encoder-decoder")] == ["Transformer", "T5"]
    with pytest.raises(ValueError, match="not a kind of transformer"):
        of_kind("recurrent")
