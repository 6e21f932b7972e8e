#!/bin/sh
# Leaves of the base image what running needs, and makes it the same at each build: services/Dockerfile copies the result into an
# empty image, so that what is removed here takes no room.
set -eu
python=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
# What installs packages has done so elsewhere. In Python's own image it lies beside Python; where Debian's Python stands in for
# that, it is packages.
rm -rf /usr/local/lib/python3*/site-packages/* /usr/local/bin/*pip* /usr/local/bin/idle* /usr/local/bin/pydoc* \
    /usr/local/bin/2to3* /usr/local/bin/wheel /usr/local/include /usr/local/share/man
installers=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' \
    'python3-pip*' 'python3-setuptools*' python3-wheel python3-pkg-resources \
    'python3*-venv' 2>/dev/null | sed -n 's/^ii *//p')
[ -z "$installers" ] || dpkg --purge --force-depends $installers
for unused in ensurepip idlelib lib2to3 pydoc_data test tkinter turtledemo; do rm -rf "${python:?}/$unused"; done
# Python's own image holds its library uncompiled, and where it runs nothing can be written: each process would compile it anew.
# Layers change the times of files; a file compiled like this is good without looking at its source's.
find "$python" -depth -name __pycache__ -exec rm -r {} +
PYTHONHASHSEED=0 python3 -B -m compileall -q -f --invalidation-mode unchecked-hash "$python"
sh "$(dirname "$0")/forget.sh"
