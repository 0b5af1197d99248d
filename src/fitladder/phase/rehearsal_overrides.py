"""Overrides of a registered rung for one rehearsal, and the experiment that they make.

Overrides go through the same validation as a registration; with any of them set, nothing registered is shown.
"""

from typing import Any, Literal

from pydantic import Field

from fitladder.canonical import parse_model
from fitladder.capacity.capture_coverage import covering_capture_list
from fitladder.errors import RegistrationError
from fitladder.frozen import Frozen
from fitladder.records.experiment import Experiment
from fitladder.records.settings import Rung

__all__ = ["Overrides", "override"]


class Overrides(Frozen):
    """Changes of a rung; None and empty leave the registered value."""

    max_num_seqs: int | None = None
    capture: Literal["exact", "implicit"] | None = None
    num_gpu_blocks: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_memory_bytes: int | None = None
    args: dict[str, str | int | bool] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)


def override(experiment: Experiment, rung: Rung, overrides: Overrides) -> tuple[Experiment, Rung]:
    """The experiment of this one rung with the overrides in it. Raises RegistrationError where it is none.

    Another width under exact capture gets the list that covers it. An overridden pool is not compared with
    the registered one, and memory stated for it only lets engines stand side by side.
    """
    width = overrides.max_num_seqs or rung.max_num_seqs
    values: dict[str, Any] = experiment.model_dump(mode="json")
    engine = values["engine"]
    engine["capture"] = capture = overrides.capture or engine["capture"]
    engine["args"] |= overrides.args
    engine["environment"] |= overrides.environment
    if overrides.num_gpu_blocks is not None:
        engine["num_gpu_blocks_override"] = None
    for name in ("gpu_memory_utilization", "kv_cache_memory_bytes"):
        if (value := getattr(overrides, name)) is not None:
            engine[name] = value
    sizes = None
    if capture == "exact":
        kept = rung.capture_sizes if width == rung.max_num_seqs else None
        sizes = list(kept or covering_capture_list(width))
    values["rungs"] = [rung.model_dump(mode="json") | {"max_num_seqs": width, "capture_sizes": sizes}]
    changed = parse_model(Experiment, values, where="rehearsal", error=RegistrationError)
    return changed, changed.rungs[0]
