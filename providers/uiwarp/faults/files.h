// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where rules of --faults are read from. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "faults/rules.h"

namespace uiw::faults {

// The name by which there are no rules: a program begins without, and may be given some later.
inline constexpr char kNoRules[] = "none";

// The ready-made ones of a folder, by which --faults knows them; sorted.
std::vector<std::string> ready_made(const std::string& folder);
// The file of that name there.
std::string ready_made_file(const std::string& folder, const std::string& name);

// What `name` means: a path, kNoRules, or a ready-made file of `folder`. Empty: there is none, and
// `problem` says which there are.
std::string find_rules(const std::string& name, const std::string& folder, std::string& problem);

// Reads and parses what find_rules() has found. As parse(); the sentence begins with the path.
std::string load(const std::string& path, Rules& out);

// The folder of ready-made files beside this library, as it was installed or built. Empty: there is
// none.
std::string folder_beside_library();

}  // namespace uiw::faults
