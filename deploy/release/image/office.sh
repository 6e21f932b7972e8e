#!/bin/sh
# After fonts and LibreOffice were installed: removes what converting a Word document does not read (icons, samples, wizards, macros,
# filters for files of other programs with their libraries), and makes the list of fonts. dpkg still names the packages that these
# files are of, so that others can be installed on top.
set -eu
here=$(dirname "$0")
sh "$here/forget.sh"
cd /usr/lib/libreoffice
rm -rf share/gallery share/template share/wizards share/basic share/xslt share/emojiconfig share/labels share/tipoftheday \
    share/autotext share/config/wizard program/wizards program/libwpftwriterlo.so
rm -f share/config/images_*.zip /usr/share/libreoffice/share/config/images_*.zip
for library in abw-0 e-book-0 etonyek-0 mwaw-0 odfgen-0 staroffice-0 wpd-0 wpg-0 wps-0; do
    rm -f /usr/lib/*/lib"$library".*.so.*
done
find /usr/share/fonts -type d -exec touch -d "@${SOURCE_DATE_EPOCH:-0}" {} +
fc-cache --force
