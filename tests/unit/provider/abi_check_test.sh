#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Usage: abi_check_test.sh CMAKE CC BUILDLIB SCRATCH
# Does the configure-time check of libibverbs' private ABI accept the installed one, and say what is
# wrong with others?
set -eu
cmake=$1 cc=$2 buildlib=$3 scratch=$4
rm -rf "$scratch"
mkdir -p "$scratch/project"
cd "$scratch"

cat > project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(check C)
find_package(PkgConfig REQUIRED)
pkg_check_modules(IBVERBS REQUIRED libibverbs)
include($buildlib/RdmaCoreAbi.cmake)
END

# A table of operations like libibverbs', but a different one.
cat > dummy_ops.c <<END
static int advise_mr(void) { return 1; }
static int brand_new(void) { return 2; }
struct ops { int (*first)(void), (*second)(void); };
extern const struct ops verbs_dummy_ops;
const struct ops verbs_dummy_ops = { advise_mr, brand_new };
END
"$cc" -O2 -fPIC -c dummy_ops.c -o dummy_ops.c.o
ar rc other.a dummy_ops.c.o
ar rc unreadable.a project/CMakeLists.txt
echo 'IBVERBS_PRIVATE_59 { global: nothing; };' > other.map
echo 'void nothing(void) {}' > other.c
"$cc" -shared -fPIC other.c -Wl,--version-script=other.map -o other.so

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
expect 0 "private ABI 34, 76 operations as declared"
configure other_operations "-DUIWARP_LIBIBVERBS_ARCHIVE=$scratch/other.a"
expect 1 "only in libibverbs: brand_new" "has 2 provider operations" "rdma-core up to 56"
configure other_version "-DUIWARP_LIBIBVERBS=$scratch/other.so"
expect 1 "offers 'IBVERBS_PRIVATE_59'" "rdma-core up to 56"
for archive in missing.a unreadable.a; do
  configure "with_$archive" "-DUIWARP_LIBIBVERBS_ARCHIVE=$scratch/$archive"
  expect 0 "is missing or cannot be read" "UIWARP_LIBIBVERBS_ARCHIVE"
done
echo "all as expected"
