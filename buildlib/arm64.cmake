# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Toolchain for arm64 on another Debian machine: Debian's cross compiler, the libraries of the arm64 system unpacked in
# the folder UIWARP_ARM64_ROOT, and QEMU to run what was built. utils/check-arm64 makes the folder.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(UIWARP_ARM64_ROOT "" CACHE PATH "Folder with the arm64 system's packages unpacked")
# Also for the projects that CMake makes to try the compiler.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES UIWARP_ARM64_ROOT)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT ${UIWARP_ARM64_ROOT})
# The processor of utils/check-arm64's emulated machine: QEMU's "max" has much that costs an emulation time.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu neoverse-n1 -L ${UIWARP_ARM64_ROOT})

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${UIWARP_ARM64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${UIWARP_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${UIWARP_ARM64_ROOT}/usr/share/pkgconfig)
