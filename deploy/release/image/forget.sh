#!/bin/sh
# Removes what installing leaves behind: caches, logs and former versions of lists, which differ from build to build, and pages that
# nobody reads in a container. Licences stay.
set -eu
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/cache/ldconfig/* /var/log/* /var/lib/dpkg/*-old \
    /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/.pwd.lock /root/.cache /tmp/* /var/tmp/* \
    /usr/share/locale/* /usr/share/man/* /usr/share/info/* /usr/share/zoneinfo/right /usr/share/zoneinfo/posix
find /usr/share/doc -type f ! -name copyright -delete
find /usr/share/doc -xtype l -delete
find /usr/share/doc -depth -type d -empty -delete
