# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# One static library per folder below providers/uiwarp, so that a layer that
# reaches for another one it must not know fails to link or to compile.

find_package(PkgConfig REQUIRED)
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(NL REQUIRED IMPORTED_TARGET libnl-route-3.0)
pkg_check_modules(DW REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(UNWIND REQUIRED IMPORTED_TARGET libunwind)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(IBVERBS REQUIRED IMPORTED_TARGET libibverbs)
pkg_check_modules(RDMACM REQUIRED IMPORTED_TARGET librdmacm)
find_package(Threads REQUIRED)

add_library(uiw_flags INTERFACE)
target_compile_options(uiw_flags INTERFACE
  -Wall -Wextra -Wshadow -Wvla -fno-omit-frame-pointer
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -fno-exceptions -fno-rtti -fno-threadsafe-statics>
  $<$<BOOL:${UIWARP_WERROR}>:-Werror>)
target_include_directories(uiw_flags INTERFACE
  ${CMAKE_SOURCE_DIR}/providers/uiwarp ${CMAKE_SOURCE_DIR}/kernel-headers)
# A sanitizer's runtime must be the first library of the process: `uiwarp run` preloads UIWARP_SANITIZER_RUNTIME, and so it
# has to be a shared library, which clang links, and finds when the program is started, only when told to.
set(UIWARP_SANITIZER_RUNTIME "")
if(UIWARP_FUZZ AND NOT UIWARP_SANITIZE)
  set(UIWARP_SANITIZE "address;undefined")
endif()
if(UIWARP_SANITIZE)
  list(JOIN UIWARP_SANITIZE "," _san)
  target_compile_options(uiw_flags INTERFACE -fsanitize=${_san} -fno-sanitize-recover=all)
  target_link_options(uiw_flags INTERFACE -fsanitize=${_san})
  if(UIWARP_SANITIZE MATCHES "address")
    set(_runtime asan)
  elseif(UIWARP_SANITIZE MATCHES "thread")
    set(_runtime tsan)
  else()
    set(_runtime ubsan)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    string(REPLACE "ubsan" "ubsan_standalone" _runtime "clang_rt.${_runtime}-${CMAKE_SYSTEM_PROCESSOR}")
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${_runtime}.so
    OUTPUT_VARIABLE _path OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  file(REAL_PATH "${_path}" UIWARP_SANITIZER_RUNTIME)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    cmake_path(GET UIWARP_SANITIZER_RUNTIME PARENT_PATH _path)
    target_link_options(uiw_flags INTERFACE -shared-libsan -Wl,-rpath,${_path})
    # Programs in C hand over numbers that no enumerator of verbs.h has, which is what is tested.
    target_compile_options(uiw_flags INTERFACE -fno-sanitize=enum)
    # As GCC says it; older clangs only have __has_feature().
    if(UIWARP_SANITIZE MATCHES "address")
      target_compile_definitions(uiw_flags INTERFACE __SANITIZE_ADDRESS__)
    elseif(UIWARP_SANITIZE MATCHES "thread")
      target_compile_definitions(uiw_flags INTERFACE __SANITIZE_THREAD__)
    endif()
  endif()
endif()

# libuiwarp.so is optimised across files: without, a small message costs a sixth more. The objects hold
# machine code, too, so that tests are linked as fast as ever. Only GCC makes such objects everywhere.
add_library(uiw_lto INTERFACE)
set(_lto_objects)
if(UIWARP_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT UIWARP_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(_lto_objects -flto=auto -ffat-lto-objects)
  target_link_options(uiw_lto INTERFACE -flto=auto)
endif()

# Sanitizers find as much in code that is optimised less, and it takes less to compile.
set(_layer_optimisation)
if(UIWARP_SANITIZE)
  set(_layer_optimisation $<$<CONFIG:RelWithDebInfo>:-O1>)
endif()

# The fuzz targets find their way by what their input makes run.
set(_layer_coverage)
if(UIWARP_FUZZ)
  set(_layer_coverage -fsanitize=fuzzer-no-link)
endif()

# The few bytes that libuiwarp.so has for each thread lie in the static TLS block, although it is mostly loaded by
# dlopen(). The leak checker of AddressSanitizer takes a block that the loader allocated, and that begins 16 bytes into
# a page, for another one with a header, and crashes.
set(_thread_locals -ftls-model=initial-exec)

# With UIWARP_PCH what most files read of others is read once: half of what compiling them costs. A compiler cache takes part
# when it is told not to look at macros and time (utils/check does). A file that lacks one of these headers is found out
# where packages are built, without.
option(UIWARP_PCH "Precompile the headers that most files read" OFF)
set(UIWARP_COMMON_HEADERS <algorithm> <array> <atomic> <cerrno> <cinttypes> <cstring> <deque> <functional> <memory> <mutex>
  <optional> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>
  <infiniband/verbs.h> <fcntl.h> <netinet/in.h> <sys/socket.h> <unistd.h>)
if(UIWARP_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # For ccache, which sees by it that there is one.
  target_compile_options(uiw_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
elseif(UIWARP_PCH)
  # Or another file's time of change would make it another one.
  target_compile_options(uiw_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

# uiw_layer(NAME layer...): every *.cc of this folder, linked to the layers it may use.
function(uiw_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  if(sources)
    add_library(uiw_${name} STATIC ${sources})
    target_link_libraries(uiw_${name} PUBLIC uiw_flags)
    target_compile_options(uiw_${name} PRIVATE ${_thread_locals} ${_lto_objects} ${_layer_optimisation} ${_layer_coverage})
    if(UIWARP_PCH AND name STREQUAL core)
      target_precompile_headers(uiw_core PRIVATE ${UIWARP_COMMON_HEADERS})
    elseif(UIWARP_PCH)
      target_precompile_headers(uiw_${name} REUSE_FROM uiw_core)
    endif()
    foreach(dep ${ARGN})
      target_link_libraries(uiw_${name} PUBLIC ${dep})
    endforeach()
  else()
    add_library(uiw_${name} INTERFACE)
    target_link_libraries(uiw_${name} INTERFACE uiw_flags ${ARGN})
  endif()
endfunction()
