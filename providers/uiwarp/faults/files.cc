// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/files.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/read_file.h"

namespace uiw::faults {
namespace {

constexpr char kSuffix[] = ".faults";

bool is_there(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

}  // namespace

std::vector<std::string> ready_made(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  std::filesystem::directory_iterator entry(folder, problem);
  for (; !problem && entry != std::filesystem::directory_iterator(); entry.increment(problem))
    if (entry->path().extension() == kSuffix) names.push_back(entry->path().stem().string());
  std::ranges::sort(names);
  return names;
}

std::string ready_made_file(const std::string& folder, const std::string& name) {
  return folder + "/" + name + kSuffix;
}

std::string find_rules(const std::string& name, const std::string& folder, std::string& problem) {
  if (name == kNoRules || name.find('/') != name.npos || is_there(name)) return name;
  const std::string path = ready_made_file(folder, name);
  if (!name.empty() && is_there(path)) return path;
  std::string names = kNoRules;
  for (const std::string& each : ready_made(folder)) names += ", " + each;
  problem = "there is no file '" + name + "', nor ready-made rules of that name (" + names + ")";
  return "";
}

std::string load(const std::string& path, Rules& out) {
  out = {};
  std::string text, problem;
  if (path != kNoRules) {
    problem = core::read_file(path, text);
    if (problem.empty()) problem = parse(text, out);
  }
  out.name = path;
  return problem.empty() ? "" : path + ": " + problem;
}

std::string folder_beside_library() {
  Dl_info here;
  if (!dladdr(reinterpret_cast<const void*>(&folder_beside_library), &here) || !here.dli_fname)
    return "";
  const std::string library = here.dli_fname;
  const std::string directory = library.substr(0, library.rfind('/') + 1);
  // A build tree has them where an installation without a folder for each architecture does.
  for (const char* const way : {UIWARP_LIB_TO_DATA, "../share/uiwarp"})
    if (const std::string folder = directory + way + "/faults"; is_there(folder)) return folder;
  return "";
}

}  // namespace uiw::faults
