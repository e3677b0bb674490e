"""Releases: workflows name what exists, constraints agree with pyproject.toml, wrong wheels are found."""

import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from release import lower_bounds
from release.check_wheel import complaints, package_files
from release.test_wheel import LEFT_OUT

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
yaml = pytest.importorskip("yaml")


def steps(workflow):
    """Steps and jobs that use another workflow."""
    for job in yaml.safe_load(workflow.read_text())["jobs"].values():
        yield from job.get("steps", [])
        if "uses" in job:
            yield job


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_name_what_exists(workflow):
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    variables = set(re.findall(r"^([A-Z]+) \?=", (ROOT / "Makefile").read_text(), re.M))
    for step in steps(workflow):
        for command in re.findall(r"\bmake ([^\n&|;]+)", step.get("run", "")):
            for word in command.split():
                name, _, value = word.partition("=")
                assert name in (variables if value else made), f"make {command}"
        for module in re.findall(r"python -m (release[.\w]+)", step.get("run", "")):
            assert (ROOT / (module.replace(".", "/") + ".py")).exists()
        if (used := step.get("uses", "")).startswith("./"):
            assert "workflow_call" in yaml.safe_load((ROOT / used).read_text())[True]  # the key `on`


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_rights_are_few(workflow):
    text = workflow.read_text()
    for used in re.findall(r"uses: (\S+.*)", text):
        assert used.startswith("./") or re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v[\d.]+", used), used
    for wanted in re.findall(r"pip install (.+)", text):
        assert all("==" in one for one in wanted.split()), wanted
    content = yaml.safe_load(text)
    assert content["permissions"] == {"contents": "read"}
    writing = [
        name for name, job in content["jobs"].items() if "write" in job.get("permissions", {}).values()
    ]
    assert writing == (["publish"] if workflow.stem == "release" else [])


def test_there_are_workflows_for_changes_wheels_and_releases():
    assert {"ci", "wheels", "release"} <= {path.stem for path in WORKFLOWS}


def test_a_release_has_every_kind_of_wheel():
    matrix = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())["jobs"]["wheels"][
        "strategy"
    ]["matrix"]
    assert {one["build"] for one in matrix["include"]} == {
        "*-manylinux_x86_64", "*-manylinux_aarch64", "*-musllinux_x86_64", "*-musllinux_aarch64",
        "*-macosx_arm64", "*-macosx_x86_64", "*-win_amd64",
    }  # fmt: skip


def test_constraints_are_the_lower_bounds_of_pyproject():
    assert lower_bounds.STORED.read_text() == lower_bounds.as_constraints()


def test_tests_left_out_exist():
    for name in LEFT_OUT:
        path, _, function = name.partition("::")
        assert (ROOT / path).exists(), name
        assert not function or f"def {function}(" in (ROOT / path).read_text()


def wheel(folder, name="crfit-1.0-cp312-abi3-manylinux_2_28_x86_64.whl", without=(), extra=()):
    tag = "-".join(name.removesuffix(".whl").split("-")[2:])
    inside = dict.fromkeys(package_files(), "")
    inside |= {
        "crfit/_native.abi3.so": "",
        "crfit/_native.pyi": "",
        "crfit-1.0.dist-info/WHEEL": f"Tag: {tag}",
    }
    inside |= {"crfit-1.0.dist-info/licenses/LICENSE": "", "crfit-1.0.dist-info/entry_points.txt": ""}
    with ZipFile(folder / name, "w") as archive:
        for file in [*inside, *extra]:
            if file not in without:
                archive.writestr(file, inside.get(file, ""))
    return folder / name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "crfit-1.0-cp312-abi3-linux_x86_64.whl"}, "repair the wheel"),
        ({"name": "crfit-1.0-cp311-abi3-manylinux_2_28_x86_64.whl"}, "begins with cp312"),
        ({"name": "crfit-1.0-cp313-cp313-manylinux_2_28_x86_64.whl"}, "share the abi3 wheel"),
        ({"without": {"crfit/py.typed"}}, "lacks crfit/py.typed"),
        ({"without": {"crfit/pages/base.css"}}, "lacks crfit/pages/base.css"),
        ({"without": {"crfit/_native.abi3.so"}}, "0 native modules"),
        ({"without": {"crfit-1.0.dist-info/licenses/LICENSE"}}, "lacks licenses/LICENSE"),
        ({"extra": ["tests/test_x.py"]}, "has tests/test_x.py"),
        ({"extra": ["crfit/_native.cpython-311-x86_64-linux-gnu.so"]}, "2 native modules"),
    ],
)
def test_wrong_wheels_are_found(tmp_path, changes, message):
    found = complaints(wheel(tmp_path, **changes))
    assert any(message in one for one in found), found


def test_a_right_wheel_has_no_complaint(tmp_path):
    found = complaints(wheel(tmp_path, name="crfit-1.0-cp314-cp314t-manylinux_2_28_x86_64.whl"))
    assert found == []
