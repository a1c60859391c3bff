# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A provider shares structures with libibverbs that no installed header describes. Here the installed
# library is compared with what providers/uiwarp/abi/ declares, before anything is built on it.
#
# Sets UIWARP_PABI, the number of the private ABI: it is in the provider's file name and in the name of the
# function that it registers with.

# The private ABIs that uiwarp knows, and the releases whose operations go by each: 59 changed in 62 without
# a new number (provider/layout.c). doc/rdma-core-versions.md says what was tried.
set(_known 34 57 59 64)
set(_releases_34 34)
set(_releases_57 34)
set(_releases_59 59 62)
set(_releases_64 64)
set(_supported "uiwarp supports private ABIs 34, 57, 59 and 64, that is rdma-core 44 to 64")

find_program(CMAKE_READELF readelf REQUIRED)

# 1. The library's own word for it: the symbol version IBVERBS_PRIVATE_nn.
find_library(UIWARP_LIBIBVERBS ibverbs HINTS ${IBVERBS_LIBRARY_DIRS} ${IBVERBS_LIBDIR} REQUIRED)
execute_process(COMMAND ${CMAKE_READELF} -VW ${UIWARP_LIBIBVERBS}
  OUTPUT_VARIABLE _versions ERROR_QUIET)
string(REGEX MATCH "IBVERBS_PRIVATE_([0-9]+)" _found "${_versions}")
set(UIWARP_PABI "${CMAKE_MATCH_1}")
if(NOT UIWARP_PABI IN_LIST _known)
  message(FATAL_ERROR
    "${UIWARP_LIBIBVERBS} (libibverbs ${IBVERBS_VERSION}) offers '${_found}': what a provider shares "
    "with such a libibverbs is not known here, and guessing would make it call the wrong functions.\n"
    "${_supported}. Install the libibverbs-dev of such a release, or point PKG_CONFIG_PATH to one.")
endif()

# 2. The operations and their order, read from the static library.
set(UIWARP_LIBIBVERBS_ARCHIVE "" CACHE FILEPATH
  "libibverbs.a to check the private ABI against (default: beside libibverbs.so)")
set(_archive "${UIWARP_LIBIBVERBS_ARCHIVE}")
if(NOT _archive)
  cmake_path(GET UIWARP_LIBIBVERBS PARENT_PATH _archive)
  string(APPEND _archive "/libibverbs.a")
endif()
set(_installed "")
if(EXISTS "${_archive}")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env READELF=${CMAKE_READELF} AR=${CMAKE_AR}
            ${CMAKE_CURRENT_LIST_DIR}/rdma-core-ops "${_archive}"
    OUTPUT_VARIABLE _installed OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
string(REPLACE "\n" ";" _installed "${_installed}")
set(_header ${CMAKE_CURRENT_LIST_DIR}/../providers/uiwarp/abi/operations.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${_header} ${CMAKE_CURRENT_LIST_DIR}/rdma-core-ops)
file(READ ${_header} _text)
string(REGEX MATCHALL "(OURS|OTHER)\\([0-9]+, [a-z_]+" _rows "${_text}")

# 3. Which release's list is it?
set(_match "")
foreach(_release ${_releases_${UIWARP_PABI}})
  set(_declared "")
  foreach(_row ${_rows})
    string(REGEX MATCH "([0-9]+), ([a-z_]+)" _all "${_row}")
    if(CMAKE_MATCH_1 LESS_EQUAL _release)
      list(APPEND _declared ${CMAKE_MATCH_2})
    endif()
  endforeach()
  if(_installed STREQUAL _declared)
    set(_match ${_release})
    break()
  endif()
endforeach()
list(LENGTH _installed _installed_count)
list(LENGTH _declared _declared_count)
if(_installed STREQUAL "")
  message(WARNING
    "${_archive} is missing or cannot be read, so the operations of libibverbs ${IBVERBS_VERSION} are "
    "not checked now; the provider still checks the library that loads it. To check now, install "
    "libibverbs-dev with its static library or set UIWARP_LIBIBVERBS_ARCHIVE.")
elseif(_match STREQUAL "")
  set(_new ${_installed})
  list(REMOVE_ITEM _new ${_declared})
  set(_gone ${_declared})
  list(REMOVE_ITEM _gone ${_installed})
  message(FATAL_ERROR
    "${_archive} (libibverbs ${IBVERBS_VERSION}, private ABI ${UIWARP_PABI}) has ${_installed_count} "
    "provider operations, ${_header} declares ${_declared_count}, and they are not the same list.\n"
    "  only in libibverbs: ${_new}\n  only declared: ${_gone}\n"
    "${_supported}. Use a libibverbs-dev of such a release; building against this one would make "
    "libibverbs call the wrong functions.")
else()
  message(STATUS
    "libibverbs ${IBVERBS_VERSION}: private ABI ${UIWARP_PABI}, ${_declared_count} operations as declared")
endif()
