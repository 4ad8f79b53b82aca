#!/bin/sh
# Installs what a fresh Debian machine lacks for the whole test suite. Without root or apt it says what is
# missing and goes on: tests whose tool is missing are skipped, and say so at the end.
set -u
packages="bubblewrap chromium fish valgrind zsh"

missing=""
for package in $packages; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing, and not installed without root and apt-get:$missing"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
for package in $missing; do
    apt-get install -y -qq "$package" >/dev/null || echo "could not be installed: $package"
done
