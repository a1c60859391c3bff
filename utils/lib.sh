# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# Shared by the scripts of utils; sourced, never run.
# Sets: root (the source tree), jobs (parallel compile jobs).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)

if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# usage FILE: what it does and takes, its first comment but the license.
usage() {
  sed -n '3,${/^#/!q; s/^# \{0,1\}//p}' "$1"
}

# What a build says is shown as it comes. Not by awk: mawk reads a few KiB before it begins.
#
# progress: one line that is rewritten on a terminal; every tenth step elsewhere.
progress() {
  local line steps=0
  while IFS= read -r line; do
    [[ $line =~ ^\[\ *[0-9]+(%|/[0-9]+)\] ]] || continue
    if [ -t 1 ]; then
      printf '\r\033[K    %s' "${line:0:76}"
    elif [ $((steps % 10)) -eq 0 ]; then
      printf '    %s\n' "$line"
    fi
    steps=$((steps + 1))
  done
  if [ -t 1 ]; then printf '\r\033[K'; fi
}

# tenths: of "[17/544] ..." a line each time that another tenth is done.
tenths() {
  local line seen=0
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    if [ $((10 * BASH_REMATCH[1] / BASH_REMATCH[2])) -gt "$seen" ]; then
      seen=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      echo "    ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
    fi
  done
}

# packages_for COLUMN PURPOSE...: names from utils/packages; column 2 Debian, 3 Fedora.
packages_for() {
  local column=$1 purpose; shift
  for purpose in "$@"; do
    awk -v purpose="$purpose" -v column="$column" '$1 == purpose && $column != "-" { print $column }' "$root/utils/packages"
  done | sort -u
}

# Packages of these purposes that dpkg does not have installed.
missing_debian() {
  local package
  for package in $(packages_for 2 "$@"); do
    case "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" in
      *' ok installed') ;;
      *) echo "$package" ;;
    esac
  done
}

missing_rpm() {
  local package
  for package in $(packages_for 3 "$@"); do
    rpm -q --whatprovides "$package" >/dev/null 2>&1 || echo "$package"
  done
}

# obtainable PACKAGE...: without those that only tests and benchmarks use and that this release does not have (Ubuntu 24.04 has
# no netpipe-openmpi): what needs them is skipped.
obtainable() {
  local package known='' optional
  optional=$'\n'$(packages_for 2 check bench)$'\n'
  if apt-cache show libc6 >/dev/null 2>&1; then known=yes; fi # else nothing is known before `apt-get update`
  for package in "$@"; do
    if [ -z "$known" ] || [[ $optional != *$'\n'"$package"$'\n'* ]] || apt-cache show "$package" >/dev/null 2>&1; then
      echo "$package"
    fi
  done
}

# need_packages PURPOSE...: returns when everything is there; installs it where it may (root, or sudo
# without a password), else prints the command that does and exits 1. Never asks.
need_packages() {
  local missing as_root=()
  if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    missing=$(missing_debian "$@" | tr '\n' ' ')
    # shellcheck disable=SC2086  # a list of names
    missing=$(obtainable $missing | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
      if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root=(sudo -n)
      else
        printf 'These packages are missing, and only root can install them. Run this, then try again:\n\n' >&2
        printf '    sudo apt-get update && sudo apt-get install -y --no-install-recommends %s\n\n' "${missing% }" >&2
        exit 1
      fi
    fi
    say "Installing: $missing"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update ||
      die 'apt-get update failed: see its message above'
    # shellcheck disable=SC2086  # a list of names
    missing=$(obtainable $missing | tr '\n' ' ')
    # shellcheck disable=SC2086  # a list of names
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing </dev/null ||
      die 'apt-get install failed: see its message above'
  elif command -v rpm >/dev/null; then
    missing=$(missing_rpm "$@" | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    printf 'These packages are missing. Run this, then try again:\n\n    sudo dnf install -y %s\n\n' "${missing% }" >&2
    exit 1
  else
    say "Neither apt-get nor rpm here: taking for granted what utils/packages lists"
  fi
}

# listens PORT PID: is TCP port PORT listened on in the network namespace of process PID?
listens() {
  awk -v port=":$(printf '%04X' "$1")$" '$4 == "0A" && $2 ~ port { found = 1 } END { exit !found }' \
    "/proc/$2/net/tcp" "/proc/$2/net/tcp6" 2>/dev/null
}
