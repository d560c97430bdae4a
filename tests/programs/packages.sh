#!/bin/sh
# Install the programs of the tests that only a package manager has: a browser, ripgrep, bubblewrap,
# PostgreSQL, nginx, zsh and fish. Without apt, or without the right
# to use it, the tests that need them are skipped and say so.
missing=""
for pair in chromium:chromium rg:ripgrep bwrap:bubblewrap unshare:util-linux ip:iproute2 zsh:zsh fish:fish; do
    command -v "${pair%%:*}" > /dev/null || missing="$missing ${pair#*:}"
done
ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null || missing="$missing postgresql"
[ -x /usr/sbin/nginx ] || command -v nginx > /dev/null || missing="$missing nginx-light"
[ -z "$missing" ] && exit 0
if ! command -v apt-get > /dev/null || [ "$(id -u)" -ne 0 ]; then
    echo "missing:$missing; only root can install them, with apt-get. The tests that need them will be skipped." >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update && apt-get -qq -y --no-install-recommends install $missing > /dev/null ||
    echo "apt-get could not install:$missing. The tests that need them will be skipped." >&2
