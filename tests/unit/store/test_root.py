"""Which folder may be a root: none that is a link, overlaps another experiment's, or lies in a store."""

import subprocess
import sys
from pathlib import Path

import pytest
from support import bundles as make

from fitladder.errors import RootRefused
from fitladder.files.overlap import Mount, overlaps, parse_mounts, read_mounts
from fitladder.records.experiment import Experiment
from fitladder.store.root import check_root, resolve_root

VARIABLE = "SMALL_EXPERIMENT_ROOT"


def experiment(root: str | None, experiment_id: str = make.ID, forbidden: tuple[str, ...] = ()) -> Experiment:
    return make.experiment(experiment_id, root=root, forbidden=forbidden)


def test_the_registered_root_and_the_override_which_wins(tmp_path: Path) -> None:
    of = experiment(f"{tmp_path}/registered")
    assert resolve_root(of, {}, others=[of]) == tmp_path / "registered"
    assert resolve_root(of, {VARIABLE: f"{tmp_path}/override/"}, others=[of]) == tmp_path / "override"
    assert not (tmp_path / "override").exists()


@pytest.mark.parametrize("environ", [{}, {VARIABLE: ""}, {VARIABLE: "  "}])
def test_unset_or_empty_is_refused(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(RootRefused, match=VARIABLE):
        resolve_root(experiment(None), environ, others=[])
    if environ:  # an empty override does not fall back to the registered root
        with pytest.raises(RootRefused, match=f"{VARIABLE} is empty"):
            resolve_root(experiment(str(tmp_path)), environ, others=[])


@pytest.mark.parametrize(
    "text",
    [
        "relative/path", "", "/", "//", "~/root", "/a/../b", "/a/./b", "/a//b", "//a/b", "/a/b\n", "/a/b ",
        " /a", "/a /b", "/a/\x00b", "/a/\ud835", "/a/\u202eb", "$HOME/root", "file:///a",
    ],
)  # fmt: skip
def test_only_a_plain_absolute_path(text: str) -> None:
    with pytest.raises(RootRefused, match="artifact root"):
        check_root(text, [])


def test_no_link_in_any_component(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    for path in ("link", "link/deep", "link/deep/new", "dangling", "dangling/new", "file", "file/new"):
        with pytest.raises(RootRefused, match=f"{tmp_path}/(link|dangling|file)"):
            check_root(f"{tmp_path}/{path}", [])
    assert check_root(f"{tmp_path}/real/deep/new/er", []) == tmp_path / "real/deep/new/er"


@pytest.mark.parametrize(
    ("root", "forbidden"),
    [
        ("old", "old"),
        ("old/inside", "old"),
        ("old", "old/inside"),
        ("old", "old/"),
        ("old", "./old"),
        ("old", "x/../old"),
        ("Old", "old"),
        ("old/INSIDE", "OLD"),
        ("caf\u00e9", "cafe\u0301"),
        ("missing/a", "missing"),
        ("missing", "missing/a/b/c"),
    ],
)
def test_overlap_in_either_direction_by_any_spelling(tmp_path: Path, root: str, forbidden: str) -> None:
    (tmp_path / "old" / "inside").mkdir(parents=True)
    for spelled in (f"{tmp_path}/{forbidden}", f"/{tmp_path}//{forbidden}"):
        with pytest.raises(RootRefused, match="overlaps a forbidden root"):
            check_root(f"{tmp_path}/{root}", [("a forbidden root", spelled)])


def test_siblings_with_a_common_beginning_do_not_overlap(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    assert check_root(f"{tmp_path}/old2", [("a forbidden root", f"{tmp_path}/old")])
    assert check_root(f"{tmp_path}/new", [("a forbidden root", f"{tmp_path}/old/new")])


def test_an_alias_of_a_forbidden_root_by_symlink(tmp_path: Path) -> None:
    (tmp_path / "disk" / "old").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "disk")
    with pytest.raises(RootRefused, match="overlaps"):
        check_root(f"{tmp_path}/disk/old/new", [("a forbidden root", f"{tmp_path}/alias/old")])


def test_forbidden_roots_and_the_roots_of_others_by_either_name(tmp_path: Path) -> None:
    here = f"{tmp_path}/here"
    other = experiment(f"{tmp_path}/there", "another_experiment")
    other = other.model_copy(
        update={"artifacts": other.artifacts.model_copy(update={"environment_override": "ANOTHER_ROOT"})}
    )
    of = experiment(here, forbidden=(f"{tmp_path}/before",))
    assert resolve_root(of, {}, others=[of, other]) == Path(here)
    for environ, words in (
        ({VARIABLE: f"{tmp_path}/before/x"}, "overlaps a forbidden root"),
        ({VARIABLE: f"{tmp_path}/there"}, "overlaps the root of another_experiment"),
        ({VARIABLE: f"{tmp_path}"}, "overlaps"),
        ({"ANOTHER_ROOT": here}, "overlaps the root of another_experiment"),
    ):
        with pytest.raises(RootRefused, match=words):
            resolve_root(of, environ, others=[of, other])


@pytest.mark.parametrize(
    "inside", [".git/x", ".dvc/cache/x", "repo/.GIT", "bare.git/x", "cache/x", "repo/data/bundles/x"]
)
def test_no_root_inside_a_store_of_git_or_dvc(tmp_path: Path, inside: str) -> None:
    (tmp_path / "cache" / "files" / "md5").mkdir(parents=True)
    (tmp_path / "repo" / ".dvc").mkdir(parents=True)
    for name in ("objects", "refs", "HEAD"):
        (tmp_path / "bare.git" / name).mkdir(parents=True)
    with pytest.raises(RootRefused, match="artifact root"):
        check_root(f"{tmp_path}/{inside}", [])
    assert check_root(f"{tmp_path}/repo/runs/x", [])


MOUNTS = parse_mounts(
    "22 1 8:1 / / rw - ext4 /dev/a rw\n"
    "40 22 8:1 /srv/old/sub /mnt/bound\\040here rw - ext4 /dev/a rw\n"
    "41 22 8:9 / /disk rw shared:1 - ext4 /dev/b rw\n"
    "42 41 8:9 / /again rw - ext4 /dev/b rw\n"
)


def test_mounts_are_parsed_with_their_escapes() -> None:
    assert MOUNTS[1] == Mount(device="8:1", root="/srv/old/sub", point="/mnt/bound here")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("/mnt/bound here/new", "/srv/old", True),  # a bind mount of a folder inside
        ("/mnt/bound here", "/srv/old/sub/deeper", True),
        ("/mnt/bound here/new", "/srv/old/other", False),
        ("/disk/a", "/again/a/b", True),  # one file system, mounted twice
        ("/disk/a", "/again/b", False),
        ("/disk/srv/old", "/srv/old", False),
    ],
)
def test_a_bind_mount_is_an_alias(left: str, right: str, expected: bool) -> None:
    assert overlaps(left, right, MOUNTS) is expected
    assert overlaps(right, left, MOUNTS) is expected


@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="the platform does not list its mounts")
def test_the_platforms_own_mounts_are_readable() -> None:
    assert any(mount.point == "/" for mount in read_mounts())


def test_a_real_bind_mount_of_a_forbidden_subfolder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old" / "sub").mkdir(parents=True)
    (tmp_path / "bound").mkdir()
    code = (
        "import sys; from fitladder.store.root import check_root\n"
        "from fitladder.errors import RootRefused\n"
        "try: check_root(sys.argv[1], [('a forbidden root', sys.argv[2])]); print('accepted')\n"
        "except RootRefused as refusal: print(refusal)\n"
    )
    script = 'mount --bind "$1/old/sub" "$1/bound" || exit 77; exec "$2" -c "$3" "$1/bound/new" "$1/old"'
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            "--map-root-user",
            "sh",
            "-c",
            script,
            "sh",
            str(tmp_path),
            sys.executable,
            code,
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode != 0:
        pytest.skip(f"no mount namespace to be had here: {done.stderr.strip()[:80]}")
    assert "overlaps a forbidden root" in done.stdout
