#!/bin/sh
# Serves a host, as a source of apt, the packages of Slurm that it has under another version, and prints that one.
# revision.sh FOLDER SOURCE SUFFIX
set -eu
folder=$1 source=$2 suffix=$3
rm -rf "$folder"
mkdir -p "$folder/now" "$folder/next"
cd "$folder/now"
dpkg-query --show --showformat='${source:Package} ${db:Status-Status} ${Package} ${Version}\n' |
  awk '$1 == "slurm-wlm" && $2 == "installed" {print $3, $4}' >../installed
tr ' ' '=' <../installed | xargs apt-get download -qq >&2
version=$(awk '$1 == "slurm-client" {print $2}' ../installed)
escaped=$(printf %s "$version" | sed 's/[.]/\\&/g')
for file in *.deb; do
  dpkg-deb --raw-extract "$file" ../tree
  sed -i "s/\b$escaped\b/$version$suffix/g" ../tree/DEBIAN/control
  dpkg-deb -Znone --root-owner-group --build ../tree ../next >&2
  rm -r ../tree
done
cd ../next
for file in *.deb; do
  dpkg-deb --field "$file"
  printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$file" "$(stat --format=%s "$file")" "$(sha256sum <"$file" | cut -d ' ' -f 1)"
done >Packages
grep -q "^Version: $version$suffix\$" Packages
# Copied, not used in place: an upgrade keeps its packages.
echo "deb [trusted=yes] copy:$folder/next ./" >"$source"
apt-get update -qq -o Dir::Etc::sourcelist="$source" -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 >&2
echo "$version$suffix"
