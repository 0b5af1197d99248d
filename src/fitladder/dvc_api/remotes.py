"""Cache and remotes in .dvc/config, and the settings under which DVC refuses a tampered object.

Reads configuration only, without DVC: one call of `dvc config` takes a second or more. Places that are
folders are checked by objects.py, others only by DVC.
"""

import configparser
from dataclasses import dataclass
from pathlib import Path

from fitladder.dvc_api.objects import Store
from fitladder.errors import LineageError

__all__ = ["Remote", "cache_store", "check_settings", "load_remotes"]


@dataclass(frozen=True)
class Remote:
    """A named remote. `folder` is None where its URL is no local path."""

    name: str
    url: str
    folder: Path | None
    verifies: bool
    is_default: bool

    @property
    def store(self) -> Store | None:
        return Store(f"remote {self.name}", self.folder) if self.folder else None


def _load(checkout: Path) -> configparser.ConfigParser:
    config = configparser.ConfigParser(interpolation=None)
    for name in ("config", "config.local"):
        path = checkout / ".dvc" / name
        try:
            config.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as failure:
            raise LineageError(f"{path} cannot be read", got=failure) from failure
    return config


def cache_store(checkout: Path) -> Store:
    """DVC's cache of this checkout."""
    configured = _load(checkout).get("cache", "dir", fallback="cache")
    return Store("the cache", (checkout / ".dvc" / configured).resolve())


def load_remotes(checkout: Path) -> tuple[Remote, ...]:
    """Every configured remote, config.local on top of config. Raises LineageError."""
    config = _load(checkout)
    default = config.get("core", "remote", fallback="")
    found = []
    for section in config.sections():
        if section.startswith(("'remote \"", 'remote "')):
            name = section.split('"')[1]
            url = config.get(section, "url", fallback="")
            folder = None if "://" in url or not url else (checkout / ".dvc" / url).resolve()
            verifies = config.get(section, "verify", fallback="false").lower() == "true"
            found.append(Remote(name, url, folder, verifies, name == default))
    return tuple(found)


def check_settings(checkout: Path) -> None:
    """Refuse settings under which DVC takes tampered bytes for right. Raises LineageError, with the fix."""
    kind = _load(checkout).get("cache", "type", fallback="reflink,copy")
    if kind != "copy":
        raise LineageError(
            ".dvc/config: cache.type", got=kind, need="copy", do="run `dvc config cache.type copy`"
        )
    for remote in load_remotes(checkout):
        if not remote.verifies:
            raise LineageError(
                f".dvc/config: remote {remote.name} does not verify",
                got="verify false",
                need="verify true",
                do=f"run `dvc remote modify {remote.name} verify true`",
            )
