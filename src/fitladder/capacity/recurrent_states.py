"""Bytes of one request's recurrent state in one layer, by kind of layer and tensor parallel size.

Shapes follow vLLM's `MambaStateShapeCalculator`: a convolution's last inputs in the model's dtype, then the
recurrent state in the SSM dtype, each divided over the ranks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from fitladder.capacity.config_fields import Fields

__all__ = ["STATE_SHAPES", "StateShape"]


@dataclass(frozen=True)
class StateShape:
    """Elements on one rank: `convolution` in the model's dtype, `recurrent` in the SSM dtype, () for none."""

    convolution: tuple[int, ...]
    recurrent: tuple[int, ...] = ()

    def page_bytes(self, dtype_bytes: int, ssm_bytes: int) -> int:
        """Bytes of one state."""
        recurrent = prod(self.recurrent) * ssm_bytes if self.recurrent else 0
        return prod(self.convolution) * dtype_bytes + recurrent


def _share(fields: Fields, field: str, value: int, ranks: int) -> int:
    """One rank's part of `value`. Raises InputRefused naming the field where it does not divide."""
    if value % ranks:
        raise fields.refuse(field, f"a value that {ranks} tensor parallel ranks divide ({value} is not)")
    return value // ranks


def _gated_delta(fields: Fields, ranks: int) -> StateShape:
    key_heads, heads = fields.count("linear_num_key_heads"), fields.count("linear_num_value_heads")
    key_width, width = fields.count("linear_key_head_dim"), fields.count("linear_value_head_dim")
    keys = _share(fields, "linear_num_key_heads", key_heads, ranks) * key_width
    values = _share(fields, "linear_num_value_heads", heads, ranks)
    mixed = 2 * keys + values * width
    return StateShape((fields.count("linear_conv_kernel_dim") - 1, mixed), (values, width, key_width))


def _mamba1(fields: Fields, ranks: int) -> StateShape:
    inner = fields.count("mamba_expand") * fields.count("hidden_size")
    each = _share(fields, "hidden_size", inner, ranks)
    return StateShape((fields.count("mamba_d_conv") - 1, each), (each, fields.count("mamba_d_state")))


def _mamba2_of(  # one rank's shape from the sizes that families name differently
    fields: Fields, names: dict[str, str], inner: int, ranks: int
) -> StateShape:
    groups, size = fields.count(names["groups"]), fields.count(names["size"])
    groups += ranks - groups if groups % ranks else 0  # groups follow the heads that a rank holds
    heads = _share(fields, names["heads"], fields.count(names["heads"]), ranks)
    mixed = _share(fields, names["size"], inner + 2 * groups * size, ranks)
    kernel = fields.count(names["kernel"])
    return StateShape((kernel - 1, mixed), (heads, fields.count(names["width"]), size))


_HYBRID_NAMES = {
    "groups": "mamba_n_groups",
    "size": "mamba_d_state",
    "heads": "mamba_n_heads",
    "width": "mamba_d_head",
    "kernel": "mamba_d_conv",
}
_MAMBA2_NAMES = {
    "groups": "n_groups",
    "size": "state_size",
    "heads": "num_heads",
    "width": "head_dim",
    "kernel": "conv_kernel",
}

_NEMOTRON_NAMES = {
    "groups": "n_groups",
    "size": "ssm_state_size",
    "heads": "mamba_num_heads",
    "width": "mamba_head_dim",
    "kernel": "conv_kernel",
}


def _hybrid_mamba2(fields: Fields, ranks: int) -> StateShape:
    inner = fields.count("mamba_expand") * fields.count("hidden_size")
    return _mamba2_of(fields, _HYBRID_NAMES, fields.count("mamba_d_ssm", default=inner), ranks)


def _nemotron(fields: Fields, ranks: int) -> StateShape:
    inner = fields.count("mamba_num_heads") * fields.count("mamba_head_dim")
    return _mamba2_of(fields, _NEMOTRON_NAMES, inner, ranks)


def _plain_mamba2(fields: Fields, ranks: int) -> StateShape:
    return _mamba2_of(fields, _MAMBA2_NAMES, fields.count("expand") * fields.count("hidden_size"), ranks)


def _short_convolution(fields: Fields, ranks: int) -> StateShape:
    width = fields.count("conv_dim", default=fields.count("hidden_size"))
    return StateShape((fields.count("conv_L_cache") - 1, _share(fields, "conv_dim", width, ranks)))


STATE_SHAPES: dict[str, Callable[[Fields, int], StateShape]] = {
    "gated_delta": _gated_delta,
    "mamba1": _mamba1,
    "mamba2": _hybrid_mamba2,
    "mamba2_nemotron": _nemotron,
    "mamba2_alone": _plain_mamba2,
    "short_convolution": _short_convolution,
}
