"""Records what genuine Salt makes of the sample files in `distributions/`.

Run it with a Python that has Salt 3008 installed:

    python record_distributions.py

Each sample holds `files` (path -> text); this fills in `grains`. Only the functions that decide
about the distribution are called, with their file reading turned to the sample; the `lsb_release`
program and module count as not installed.
"""

import builtins
import json
import os
import pathlib
import platform
import sys
import tempfile

sys.modules["lsb_release"] = None

import distro  # noqa: E402
import salt.grains.core as core  # noqa: E402
import salt.utils.files  # noqa: E402


def record(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            place = pathlib.Path(root + path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        (pathlib.Path(root) / "etc").mkdir(exist_ok=True)

        def moved(path):
            return root + path if str(path).startswith(("/etc", "/usr/lib/os-release")) else path

        fopen, isfile = salt.utils.files.fopen, os.path.isfile
        salt.utils.files.fopen = lambda path, *args, **kwargs: fopen(moved(path), *args, **kwargs)
        os.path.isfile = lambda path: isfile(moved(path)) if isinstance(path, str) else isfile(path)
        platform._os_release_candidates = (moved("/etc/os-release"), moved("/usr/lib/os-release"))
        found = distro.LinuxDistribution(
            include_lsb=False, include_uname=False, include_oslevel=False, root_dir=root
        )
        core._linux_distribution = lambda: (found.name(), found.version(best=True), found.codename())
        try:
            grains = core._linux_distribution_data()
        finally:
            salt.utils.files.fopen, os.path.isfile = fopen, isfile
        if grains.get("osrelease", ""):
            grains.update(
                core._osrelease_data(grains["os"], grains["osfullname"], grains["osrelease"])
            )
        return grains


for sample in sorted((pathlib.Path(__file__).parent / "distributions").glob("*.json")):
    data = json.loads(sample.read_text())
    data["grains"] = record(data["files"])
    sample.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    builtins.print(sample.stem, {k: v for k, v in data["grains"].items() if k.startswith("os")})
