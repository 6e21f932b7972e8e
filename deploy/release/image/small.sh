#!/bin/sh
# Of an image into which nothing is installed any more: removes what installs, Perl, and what only these need. dpkg sees to it that
# nothing goes that another package needs, and keeps saying what is there.
set -eu
for package in apt libapt-pkg6.0 gpgv debian-archive-keyring adduser libgnutls30 libhogweed6 libnettle8 libp11-kit0 libtasn1-6 \
    libidn2-0 libunistring2 e2fsprogs logsave libext2fs2 libss2 libseccomp2 \
    debconf-i18n liblocale-gettext-perl libtext-charwidth-perl libtext-iconv-perl libtext-wrapi18n-perl perl-base; do
    dpkg --purge --force-remove-protected --force-remove-essential "$package" \
        || echo "$package stays: another package of this base image needs it"
done
# Conversions of text for programs in C. Python has its own.
rm -rf /usr/lib/*/gconv
sh "$(dirname "$0")/forget.sh"
