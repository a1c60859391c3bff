# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# Shared by utils/quickstart and utils/check; sourced, never run.
# Sets: root (the source tree), jobs (parallel compile jobs).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)

if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

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

# need_packages PURPOSE...: returns when everything is there; installs it where it may (root, or sudo
# without a password), else prints the command that does and exits 1. Never asks.
need_packages() {
  local missing as_root=()
  if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    missing=$(missing_debian "$@" | tr '\n' ' ')
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
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing </dev/null ||
      die 'apt-get install failed: see its message above'
  elif command -v rpm >/dev/null; then
    missing=$(missing_rpm "$@" | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    printf 'These packages are missing. Run this, then try again:\n\n    sudo dnf install -y %s\n\n' "${missing% }" >&2
    exit 1
  else
    say "Neither dpkg nor rpm here: taking for granted what utils/packages lists"
  fi
}

# listens PORT PID: is TCP port PORT listened on in the network namespace of process PID?
listens() {
  awk -v port=":$(printf '%04X' "$1")$" '$4 == "0A" && $2 ~ port { found = 1 } END { exit !found }' \
    "/proc/$2/net/tcp" "/proc/$2/net/tcp6" 2>/dev/null
}
