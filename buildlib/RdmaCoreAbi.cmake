# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A provider shares structures with libibverbs that no installed header describes. Here the installed
# library is compared with what providers/uiwarp/abi/ declares, before anything is built on it.
#
# Sets UIWARP_PABI, the number in the provider's file name.
set(UIWARP_PABI 34)
set(_supported "uiwarp supports private ABI ${UIWARP_PABI}, that is rdma-core up to 56")

find_program(CMAKE_READELF readelf REQUIRED)

# 1. The library's own word for it: the symbol version IBVERBS_PRIVATE_nn.
find_library(UIWARP_LIBIBVERBS ibverbs HINTS ${IBVERBS_LIBRARY_DIRS} ${IBVERBS_LIBDIR} REQUIRED)
execute_process(COMMAND ${CMAKE_READELF} -VW ${UIWARP_LIBIBVERBS}
  OUTPUT_VARIABLE _versions ERROR_QUIET)
string(REGEX MATCH "IBVERBS_PRIVATE_([0-9]+)" _found "${_versions}")
if(NOT CMAKE_MATCH_1 STREQUAL UIWARP_PABI)
  message(FATAL_ERROR
    "${UIWARP_LIBIBVERBS} (libibverbs ${IBVERBS_VERSION}) offers '${_found}', not "
    "IBVERBS_PRIVATE_${UIWARP_PABI}: a provider built here could not be loaded by it.\n"
    "${_supported}. Install such a libibverbs-dev (Debian 12 and Ubuntu 24.04 have one), or point "
    "PKG_CONFIG_PATH to one.")
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
set(_header ${CMAKE_CURRENT_LIST_DIR}/../providers/uiwarp/abi/rdmav${UIWARP_PABI}.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${_header} ${CMAKE_CURRENT_LIST_DIR}/rdma-core-ops)
file(READ ${_header} _text)
string(REGEX MATCH "struct verbs_context_ops {[^}]*}" _table "${_text}")
string(REGEX MATCHALL "(verbs_other_op |\\(\\*)[a-z_]+" _members "${_table}")
list(TRANSFORM _members REPLACE "^(verbs_other_op |\\(\\*)" "")
list(JOIN _members "\n" _declared)
if(_installed STREQUAL "")
  message(WARNING
    "${_archive} is missing or cannot be read, so the private ABI of libibverbs ${IBVERBS_VERSION} is "
    "not checked now; the provider still checks the library that loads it. To check now, install "
    "libibverbs-dev with its static library or set UIWARP_LIBIBVERBS_ARCHIVE.")
elseif(NOT _installed STREQUAL _declared)
  string(REPLACE "\n" ";" _installed "${_installed}")
  list(LENGTH _installed _installed_count)
  list(LENGTH _members _declared_count)
  set(_new ${_installed})
  list(REMOVE_ITEM _new ${_members})
  set(_gone ${_members})
  list(REMOVE_ITEM _gone ${_installed})
  message(FATAL_ERROR
    "${_archive} (libibverbs ${IBVERBS_VERSION}) has ${_installed_count} provider operations, "
    "${_header} declares ${_declared_count}, and they are not the same list.\n"
    "  only in libibverbs: ${_new}\n  only declared: ${_gone}\n"
    "${_supported}. Use a libibverbs-dev of such a release; building against this one would make "
    "libibverbs call the wrong functions.")
else()
  list(LENGTH _members _declared_count)
  message(STATUS
    "libibverbs ${IBVERBS_VERSION}: private ABI ${UIWARP_PABI}, ${_declared_count} operations as declared")
endif()
