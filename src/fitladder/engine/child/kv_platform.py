"""vLLM's platform, told that it runs on the device of `kv_device`; imported before vLLM's engine modules.

The answers about the device are ours; how vLLM chooses backends and blocks from them is its own.
"""

from typing import Any

from fitladder.engine.child import kv_device

# isort: split
import torch
from vllm import platforms
from vllm.platforms import cuda as cuda_module
from vllm.platforms.interface import DeviceCapability
from vllm.utils import import_utils

__all__ = ["MetaTensors", "StubbedOps"]

COMMUNICATOR = "vllm.distributed.device_communicators.base_device_communicator.DeviceCommunicatorBase"


def _answering(answer: object) -> Any:
    return classmethod(lambda cls, *a, **k: answer)


PretendedPlatform = type(
    "PretendedPlatform",
    (cuda_module.NonNvmlCudaPlatform,),
    {
        "dist_backend": "gloo",
        "get_device_capability": _answering(DeviceCapability(*kv_device.CAPABILITY)),
        "get_device_name": _answering(kv_device.NAME),
        "get_device_total_memory": _answering(kv_device.MEMORY_BYTES),
        "get_device_uuid": _answering("GPU-0"),
        "device_count": _answering(kv_device.DEVICES),
        "num_compute_units": _answering(kv_device.MULTIPROCESSORS),
        "is_integrated_gpu": _answering(False),
        "is_pin_memory_available": _answering(False),
        "is_fully_connected": _answering(True),
        "get_cuda_runtime_major": _answering(12),
        "use_custom_allreduce": _answering(False),
        "get_device_communicator_cls": _answering(COMMUNICATOR),
        "log_warnings": _answering(None),
    },
)


class _AbsentOp:
    """A custom op of an extension that is not there: it has every overload and cannot be called."""

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name

    def __getattr__(self, name: str) -> "_AbsentOp":
        if name.startswith("__"):
            raise AttributeError(name)
        return _AbsentOp(f"{self.name}.{name}")

    def __call__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(f"the op {self.name} of an absent extension was called")


class StubbedOps:
    """Whether any name of vLLM's custom ops answers; on only while a model is built."""

    lenient = False

    @classmethod
    def install(cls) -> None:
        """Make the namespaces of torch's ops answer for the absent extensions."""
        space = type(torch.ops._C)
        plain = space.__getattr__

        def answer(self: Any, name: str) -> Any:
            try:
                return plain(self, name)
            except AttributeError:
                if "support" in name:  # asked while modules load; the GPU wheel's extensions say yes
                    return lambda *a: True
                if cls.lenient and not name.startswith("__"):
                    return _AbsentOp(name)
                raise

        space.__getattr__ = answer


class MetaTensors(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
    """Every tensor is made on the meta device, whatever device the code names."""

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        tensor = bool(args) and isinstance(args[0], torch.Tensor)
        if name == "pin_memory" or (name in ("cuda", "cpu") and tensor and args[0].device.type == "meta"):
            return args[0]
        if name == "to" and tensor:
            args = tuple("meta" if self._names_a_device(value) else value for value in args)
        kwargs.pop("pin_memory", None)
        device = kwargs.get("device")
        if device is None:
            if func in torch.utils._device._device_constructors():
                kwargs["device"] = "meta"
        elif isinstance(device, int) or str(device).split(":")[0] == "cuda":
            kwargs["device"] = "meta"
        return func(*args, **kwargs)

    @staticmethod
    def _names_a_device(value: object) -> bool:
        named = isinstance(value, str) and value.split(":")[0] in ("cuda", "cpu")
        return named or isinstance(value, torch.device)


import_utils.has_deep_gemm = lambda: True  # the GPU wheel carries it
platforms.vllm_version_matches_substr = lambda text: False  # else the CPU build's version names the device
platforms._current_platform = PretendedPlatform()
StubbedOps.install()
