"""An H200 that is not there: what torch and Triton answer about the device while vLLM lays out a cache.

Imported before anything of vLLM, in a process of its own that only lays out caches (`kv_oracle`). Extension
modules of the CUDA build become empty ones; a kernel that is asked to run fails.
"""

import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

import torch
import triton.runtime.driver as triton_driver
from triton.backends.compiler import GPUTarget

__all__ = ["CAPABILITY", "DEVICES", "MEMORY_BYTES", "MULTIPROCESSORS", "NAME"]

NAME, CAPABILITY, DEVICES = "NVIDIA H200", (9, 0), 8
MEMORY_BYTES, MULTIPROCESSORS, SHARED_MEMORY_BYTES = 141 * 10**9, 132, 232_448
EXTENSIONS = (
    *("_C", "_C_stable_libtorch", "_moe_C", "_moe_C_stable_libtorch", "_qutlass_C", "cumem_allocator"),
    *("_flashmla_C", "_flashmla_extension_C"),
    *("vllm_flash_attn._vllm_fa2_C", "vllm_flash_attn._vllm_fa3_C"),
)
ABSENT_MODULES = ("vllm.third_party.flashmla.flash_mla_interface",)
ABSENT_PACKAGES = ("torchvision",)


class _AnyClass(type):
    """A class with every member, each a string."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


class _AnyModule(types.ModuleType):
    """A module that the CPU build leaves out; any name in it is a class that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _AnyClass(name, (), {"__init__": lambda self, *a, **k: None})


class _AbsentFinder:
    """Finds the modules above; it is asked last, so that one that is installed wins."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in ABSENT_MODULES and name.split(".", maxsplit=1)[0] not in ABSENT_PACKAGES:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _AnyModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["__version__"] = "0.28.0"


class _Stream:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def synchronize(self, *_: Any) -> None:
        pass

    record = wait = synchronize


class _Driver:
    """Triton's driver of the device."""

    utils = types.SimpleNamespace(
        get_device_properties=lambda _: {
            "max_shared_mem": SHARED_MEMORY_BYTES,
            "multiprocessor_count": MULTIPROCESSORS,
            "warpSize": 32,
        }
    )

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", CAPABILITY[0] * 10 + CAPABILITY[1], 32)

    def get_active_torch_device(self) -> Any:
        return torch.device("cuda", 0)

    def get_current_device(self) -> int:
        return 0

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_benchmarker(self) -> Any:
        return lambda *a, **k: [0.0]


def _pretend_extensions() -> None:
    sys.meta_path.append(_AbsentFinder())
    for short in EXTENSIONS:
        name = f"vllm.{short}"
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules[name] = module


def _pretend_device() -> None:
    properties = types.SimpleNamespace(
        name=NAME,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        multi_processor_count=MULTIPROCESSORS,
        total_memory=MEMORY_BYTES,
        is_integrated=False,
        shared_memory_per_block_optin=SHARED_MEMORY_BYTES,
        warp_size=32,
        L2_cache_size=50 << 20,
        gcnArchName="",
    )
    cuda = {
        "get_device_capability": CAPABILITY,
        "get_device_name": NAME,
        "device_count": DEVICES,
        "is_available": True,
        "current_device": 0,
        "set_device": None,
        "current_stream": _Stream(),
        "get_device_properties": properties,
    }
    accelerator = {
        "current_accelerator": torch.device("cuda"),
        "current_device_index": 0,
        "current_device_idx": 0,
        "is_available": True,
        "device_count": DEVICES,
        "empty_cache": None,
        "synchronize": None,
        "memory_stats": {},
        "memory_allocated": 0,
        "memory_reserved": 0,
        "set_device_index": None,
    }
    for module, answers in ((torch.cuda, cuda), (torch.accelerator, accelerator)):
        for name, answer in answers.items():
            setattr(module, name, _answering(answer))
    torch.cuda.Stream, torch.cuda.Event = _Stream, type("_Event", (_Stream,), {})
    if torch.version.cuda is None:
        torch.version.cuda = "12.9"
    getattr(triton_driver, "driver", triton_driver).set_active(_Driver())


def _answering(answer: object) -> Any:
    return lambda *a, **k: answer


_pretend_extensions()
_pretend_device()
