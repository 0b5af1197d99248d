"""Study file: cells, workload, repeats and their order.

All cells have the same workload, seeds and sampled tokens for each sample; they differ in width, capture,
pool, admission and samples alone. Pure but for `load_study`.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from fitladder.canonical import canonical_sha256, parse_model
from fitladder.capacity.capture_coverage import check_capture_list, covering_capture_list
from fitladder.errors import FitladderError, InputRefused, RegistrationError
from fitladder.files.strict_yaml import parse_yaml
from fitladder.frozen import Count, Frozen, Identifier, TokenId
from fitladder.sampling.engine_protocol import SampleRequest
from fitladder.sampling.seeds import stage1_seed
from fitladder.study.seeded_draw import draw_integers, draw_order

__all__ = ["Cell", "Comparison", "Kind", "Study", "Unit", "Workload", "load_study", "parse_study"]

MIN_REPEATS = 3
Kind = Literal["ours", "bare"]
Unit = tuple[str, Kind]  # (cell name, by our loop or by LLM.generate)
FACTORS = ("width", "capture", "pool_blocks", "admission", "samples")
RESERVED = (  # what a study sets itself: by a factor, or the same for all cells
    "async_scheduling", "cudagraph_capture_sizes", "disable_log_stats", "enable_prefix_caching",
    "enforce_eager", "generation_config", "load_format", "max_cudagraph_capture_size", "max_num_seqs",
    "model", "num_gpu_blocks_override", "seed", "skip_tokenizer_init",
)  # fmt: skip


class StudyModel(Frozen):
    """The model of all cells: a folder, or a preset of which a folder without weights is written.

    `load_format` is vLLM's; `dummy` gives random weights.
    """

    preset: str | None = None
    folder: str | None = None
    load_format: Literal["auto", "dummy"]

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.preset is None) == (self.folder is None):
            raise ValueError("model: need exactly one of preset and folder")
        if self.preset is not None and self.load_format != "dummy":
            raise ValueError("model.load_format: a preset has no weights, need dummy")
        return self


class StudySampling(Frozen):
    """Sampling parameters of all cells; penalties are off. `run_seed` also seeds prompts and orders."""

    temperature: Annotated[float, Field(gt=0, le=5, allow_inf_nan=False)]
    top_p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
    top_k: Count
    run_seed: Annotated[int, Field(ge=0, lt=2**63)]


class Workload(Frozen):
    """Prompts of given lengths, assigned in turn, and the tokens that each sample samples; EOS is ignored.

    Prompt ids are uniform in `first_token_id`..`last_token_id`; sample i has the same prompt and seed in
    every cell and repeat. `warmup_tokens` are sampled in place of `sampled_tokens` before a cell is measured.
    """

    prompt_tokens: tuple[Count, ...] = Field(min_length=1)
    sampled_tokens: Count
    warmup_tokens: Count
    first_token_id: TokenId
    last_token_id: TokenId

    @model_validator(mode="after")
    def _drawable(self) -> Self:
        if self.last_token_id <= self.first_token_id:
            raise ValueError("workload.last_token_id: need more than first_token_id")
        return self

    def prompt_lengths(self, samples: int) -> list[int]:
        """Prompt tokens of each of so many samples, in order."""
        return [self.prompt_tokens[index % len(self.prompt_tokens)] for index in range(samples)]

    def requests(self, samples: int, run_seed: int, max_tokens: int) -> list[SampleRequest]:
        """One request for each sample, with a prompt and a seed of its own.

        Args:
            max_tokens: tokens to sample for each.
        """
        span = self.last_token_id - self.first_token_id + 1
        return [
            SampleRequest(
                request_id=f"s{index:04d}",
                prompt_token_ids=tuple(
                    int(drawn) + self.first_token_id
                    for drawn in draw_integers(f"prompt {run_seed} {index}", length, span)
                ),
                n=1,
                seed=stage1_seed(run_seed, f"s{index:04d}"),
                max_tokens=max_tokens,
            )
            for index, length in enumerate(self.prompt_lengths(samples))
        ]


class Cell(Frozen):
    """One combination of factors.

    width: max_num_seqs. capture: `exact` captures `capture_sizes`, `implicit` what vLLM chooses, `none` runs
    eager. pool_blocks: num_gpu_blocks_override. bare: the requests are also run by `LLM.generate` alone, in
    the same engine.
    """

    width: Count
    capture: Literal["exact", "implicit", "none"]
    pool_blocks: Count
    admission: Literal["worst_case", "spaced", "spaced_groups"]
    samples: Count
    capture_sizes: tuple[Count, ...] | None
    bare: bool

    @model_validator(mode="after")
    def _covered(self) -> Self:
        if (self.capture == "exact") != (self.capture_sizes is not None):
            raise ValueError("capture_sizes: an exact cell has them, no other")
        if self.capture_sizes is not None:
            try:
                check_capture_list(self.capture_sizes, self.width)
            except FitladderError as error:
                raise ValueError(str(error)) from error
        return self

    @property
    def name(self) -> str:
        """Name made of the factors, unique within a study."""
        return f"w{self.width}-{self.capture}-p{self.pool_blocks}-{self.admission}-n{self.samples}"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Ways in which the cell is run: `ours` is our step loop, `bare` is `LLM.generate` alone."""
        return ("ours", "bare") if self.bare else ("ours",)


class Comparison(Frozen):
    """Two cells whose tokens a second are divided, and what the ratio shows."""

    numerator: str
    denominator: str
    shows: str = Field(min_length=1)


class Study(Frozen):
    """A study, its cells expanded from the lists of factors in the file."""

    schema_version: Literal[1]
    study_id: Identifier
    question: str = Field(min_length=1)
    backend: Literal["vllm-cuda", "vllm-cpu"]
    model: StudyModel
    engine_args: dict[str, str | int | float | bool]
    environment: dict[str, str]
    sampling: StudySampling
    workload: Workload
    cells: tuple[Cell, ...] = Field(min_length=1)
    comparisons: tuple[Comparison, ...]
    repeats: int = Field(ge=MIN_REPEATS)
    engines_at_once: Count
    build_deadline_s: Count
    run_deadline_s: Count

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [cell.name for cell in self.cells]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"cells: {twice} stands twice")
        for comparison in self.comparisons:
            for name in (comparison.numerator, comparison.denominator):
                if name not in names:
                    raise ValueError(f"comparisons: got {name}, need one of {', '.join(names)}")
        if taken := sorted(set(RESERVED) & set(self.engine_args)):
            raise ValueError(f"engine_args.{taken[0]}: set by the study itself")
        return self

    @property
    def sha256(self) -> str:
        """SHA-256 of the parsed study; layout and comments of the file do not change it."""
        return canonical_sha256(self)

    def cell(self, name: str) -> Cell:
        """The cell of this name. Raises KeyError."""
        return {cell.name: cell for cell in self.cells}[name]

    def batches(self) -> list[list[Cell]]:
        """The cells in a seeded random order, in groups of `engines_at_once` that are built together."""
        order = draw_order(f"cells {self.sampling.run_seed}", self.cells)
        return [order[at : at + self.engines_at_once] for at in range(0, len(order), self.engines_at_once)]

    def block(self, batch: list[Cell], repeat: int) -> list[Unit]:
        """One repeat of every unit of a batch, in a seeded random order of the repeat's own."""
        units: list[Unit] = [(cell.name, kind) for cell in batch for kind in cell.kinds]
        return draw_order(f"block {self.sampling.run_seed} {repeat}", units)


def load_study(path: Path) -> Study:
    """Read a study file. Raises InputRefused where it cannot be read, RegistrationError naming the field."""
    try:
        text = path.read_bytes().decode()  # as it stands: text mode would turn a lone CR into LF
    except (OSError, UnicodeDecodeError) as failure:
        raise InputRefused(f"{path} cannot be read", got=failure, need="a study file") from failure
    return parse_study(text, where=str(path))


def parse_study(text: str, *, where: str) -> Study:
    """Study from the text of a YAML or JSON file.

    An entry of `cells` gives each factor as a value or a list and makes one cell for each combination.

    Args:
        where: path that refusals name.

    Raises RegistrationError naming the field at fault.
    """
    document = parse_yaml(text, where=where, error=RegistrationError)
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise RegistrationError(where, got=type(document).__name__, need="a study with a list of cells")
    cells = [cell for entry in document["cells"] for cell in _expanded(entry, where)]
    return parse_model(Study, document | {"cells": cells}, where=where, error=RegistrationError)


def _expanded(entry: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(entry, Mapping) or set(FACTORS) - set(entry):
        raise RegistrationError(f"{where}: cells", got=entry, need=f"entries with {', '.join(FACTORS)}")
    levels = [entry[name] if isinstance(entry[name], list) else [entry[name]] for name in FACTORS]
    return [_cell(entry, dict(zip(FACTORS, chosen, strict=True))) for chosen in itertools.product(*levels)]


def _cell(entry: Mapping[str, Any], factors: dict[str, Any]) -> dict[str, Any]:
    sizes = entry.get("capture_sizes")
    width = factors["width"]
    if sizes is None and factors["capture"] == "exact" and type(width) is int and width > 0:
        sizes = covering_capture_list(width)
    return {"bare": False} | dict(entry) | factors | {"capture_sizes": sizes}
