#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Usage: abi_check_test.sh CMAKE CC SOURCE-ROOT SCRATCH
# Does the configure-time check of libibverbs' private ABI accept the installed one and each that uiwarp
# knows, and say what is wrong with others?
set -eu
cmake=$1 cc=$2 root=$3 scratch=$4
rm -rf "$scratch"
mkdir -p "$scratch/project"
cd "$scratch"

cat > project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(check C)
find_package(PkgConfig REQUIRED)
pkg_check_modules(IBVERBS REQUIRED libibverbs)
include($root/buildlib/RdmaCoreAbi.cmake)
END

# archive FILE NAME...: a table of operations as libibverbs.a has it, of these.
archive() {
  file=$1
  shift
  {
    number=0
    for name; do
      number=$((number + 1))
      echo "static int $name(void) { return $number; }"
    done
    echo "struct ops { int (*op[$#])(void); };"
    echo "extern const struct ops verbs_dummy_ops;"
    echo "const struct ops verbs_dummy_ops = {{"
    for name; do echo "  $name,"; done
    echo "}};"
  } > dummy_ops.c
  "$cc" -O2 -fPIC -c dummy_ops.c -o dummy_ops.c.o
  ar rc "$file" dummy_ops.c.o
}
# library FILE NUMBER: a library that says its private ABI is this one.
library() {
  echo "IBVERBS_PRIVATE_$2 { global: nothing; };" > version.map
  echo 'void nothing(void) {}' | "$cc" -shared -fPIC -x c - -Wl,--version-script=version.map -o "$1"
}
# operations RELEASE: what its table holds, by abi/operations.h.
operations() {
  sed -n 's/^\t\(OURS\|OTHER\)(\([0-9]*\), \([a-z_]*\).*/\2 \3/p' "$root/providers/uiwarp/abi/operations.h" |
    awk -v release="$1" '$1 <= release { print $2 }'
}

# configure NAME OPTION...: prints what cmake says in one line, however it wraps it
configure() {
  name=$1
  shift
  status=0
  "$cmake" -S project -B "$name" "-DCMAKE_C_COMPILER=$cc" "$@" > "$name.log" 2>&1 || status=$?
  said=$(tr -s ' \n' '  ' < "$name.log")
}
expect() { # STATUS TEXT...
  [ "$status" -eq "$1" ] || { echo "$name: status $status, not $1: $said"; exit 1; }
  shift
  for text; do
    case $said in
      *"$text"*) ;;
      *) echo "$name: no '$text' in: $said"; exit 1 ;;
    esac
  done
}

configure installed
expect 0 "operations as declared"

# pair PABI RELEASE: a libibverbs that has this release's operations under this number
pair() {
  library "abi$1.so" "$1"
  # shellcheck disable=SC2046  # a list of names
  archive "operations$2.a" $(operations "$2")
  configure "abi$1-operations$2" "-DUIWARP_LIBIBVERBS=$scratch/abi$1.so" \
    "-DUIWARP_LIBIBVERBS_ARCHIVE=$scratch/operations$2.a"
}
for known in '34 34 76' '57 34 76' '59 59 79' '59 62 81' '64 64 83'; do
  # shellcheck disable=SC2086  # three words
  set -- $known
  pair "$1" "$2"
  expect 0 "private ABI $1, $3 operations as declared"
done
pair 34 59
expect 1 "private ABI 34) has 79 provider operations" "only in libibverbs: alloc_dmah;dealloc_dmah;reg_mr_ex" \
  "rdma-core 44 to 64"
pair 64 62
expect 1 "private ABI 64) has 81 provider operations" "only declared: alloc_buf;free_buf"

library abi65.so 65
configure unknown "-DUIWARP_LIBIBVERBS=$scratch/abi65.so"
expect 1 "offers 'IBVERBS_PRIVATE_65'" "private ABIs 34, 57, 59 and 64" "PKG_CONFIG_PATH"

library abi34.so 34
archive other.a advise_mr brand_new
ar rc unreadable.a project/CMakeLists.txt
configure other_operations "-DUIWARP_LIBIBVERBS=$scratch/abi34.so" "-DUIWARP_LIBIBVERBS_ARCHIVE=$scratch/other.a"
expect 1 "only in libibverbs: brand_new" "has 2 provider operations"
for archive in missing.a unreadable.a; do
  configure "with_$archive" "-DUIWARP_LIBIBVERBS_ARCHIVE=$scratch/$archive"
  expect 0 "is missing or cannot be read" "UIWARP_LIBIBVERBS_ARCHIVE"
done

# The packages have to know each one, too.
known=$(sed -n 's/^set(_known \(.*\))$/\1/p' "$root/buildlib/RdmaCoreAbi.cmake")
[ "$known" ] || { echo "no list of known private ABIs in RdmaCoreAbi.cmake"; exit 1; }
for number in $known; do
  grep -q "^until_$number = " "$root/debian/rules" || { echo "debian/rules lacks private ABI $number"; exit 1; }
done
echo "all as expected"
