"""Puts `data_manifests/`, which lies beside the package here, into a wheel."""

import sys

from setuptools import find_packages, setup

packages, folders = find_packages("src", include=["visprompt*"]), {"": "src"}
if "editable_wheel" not in sys.argv:  # an editable install finds them in the repository
    packages.append("visprompt.data_manifests")
    folders["visprompt.data_manifests"] = "data_manifests"
setup(packages=packages, package_dir=folders, package_data={"visprompt.data_manifests": ["**/*"]})
