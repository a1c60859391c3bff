// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The environment in which a program sees the uiwarp device.
#pragma once

#include <string>

#include "layout.h"

namespace uiw::tool {

// As std::filesystem::absolute(); relative as it was when the working directory is gone.
std::string absolute(const std::string& path);

// Puts `item` first in a list whose elements any character of `separators` divides; joins with
// `separator`, drops empty elements, and keeps an element that is already there where it is.
std::string prepend(const std::string& item, const std::string& list, const char* separators,
                    char separator);

// Empty when all parts are there; else a sentence that says which are not.
std::string why_incomplete(const Layout& layout);

// Changes this process's environment (LD_PRELOAD, and the driver list of libibverbs) so that what
// it executes sees the device. Returns false and a sentence when that cannot work.
bool set_environment(const Layout& layout, std::string& problem);

// Sets UIWARP_FACE for this process and what it executes. Returns false and a sentence that names
// the faces when there is none of that name.
bool choose_face(const std::string& name, std::string& problem);

// The same of UIWARP_CHECK and the options of --check.
bool choose_check(const std::string& options, std::string& problem);
// Whether `word`, in the place of the program behind "--check", is no program but such options;
// `problem` says then how they are given.
bool is_taken_for_program(const std::string& word, std::string& problem);

// The same of UIWARP_FAULTS and the file of --faults, whose rules are looked at.
bool choose_faults(const std::string& path, std::string& problem);
// Why no file can be made in the folder of `file`; empty when one can, or when %p stands in the
// name of the folder.
std::string why_no_file(const std::string& file);
// Why no trace can be written to `file`; empty when it can.
std::string why_untraceable(const std::string& file);
// The same of UIWARP_TRACE and what is given to --trace.
bool choose_trace(const std::string& options, std::string& problem);

// The same of UIWARP_SHAKE and what follows --shake.
bool choose_shake(const std::string& seed, std::string& problem);

}  // namespace uiw::tool
