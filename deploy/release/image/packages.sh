#!/bin/sh
# Installs a lock of Python packages into /venv, without what no service uses: packages.sh <lock>.
set -eu
here=$(dirname "$0")
# What only runs here leaves no compiled files: theirs would be good for as long as their sources have the times that they have now.
export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
python3 -m venv --without-pip /venv
# Wheels only: nothing that comes from outside is run while building, and what has no wheel is noticed here.
python3 -m pip --python /venv/bin/python install --no-deps --only-binary=:all: --no-compile --require-hashes -r "$1"
/venv/bin/python "$here/trim.py"
# Not by several processes: which of them compiled what before shows in the bytes.
/venv/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /venv/lib
# What is left must still do its work.
/venv/bin/python -c 'from boto3 import client; [client(name, region_name="eu-west-1") for name in ("s3", "sts", "sso", "sso-oidc")]'
