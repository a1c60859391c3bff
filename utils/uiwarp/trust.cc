// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trust.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "child.h"

namespace uiw::tool {
namespace {

constexpr int kMostLinks = 40;  // the kernel's own limit, path_resolution(7)
constexpr int kLimitMs = 10000;

std::string user_name(uid_t uid) {
  const passwd* entry = getpwuid(uid);
  return "user " + std::to_string(uid) + (entry ? std::string(" (") + entry->pw_name + ")" : "");
}

std::string group_name(gid_t gid) {
  const group* entry = getgrgid(gid);
  return "group " + std::to_string(gid) + (entry ? std::string(" (") + entry->gr_name + ")" : "");
}

// The mode tells of an access control list, too: its group bits are then the most that the list
// gives to anybody (acl(5), "correspondence").
Untrusted judge(const std::string& path, const struct stat& st) {
  // Nobody can change what a link says, only replace it, which is up to its folder.
  const bool has_mode = !S_ISLNK(st.st_mode);
  const bool group = has_mode && (st.st_mode & S_IWGRP) != 0;
  const bool others = has_mode && (st.st_mode & S_IWOTH) != 0;
  if (st.st_uid == 0 && !group && !others) return {};
  Untrusted found;
  if (st.st_uid != 0)
    found.said = user_name(st.st_uid);
  else
    found.said = others ? "every user" : group_name(st.st_gid);
  found.said += " may change " + path;
  if (st.st_uid != 0) found.mend = std::string(has_mode ? "chown" : "chown -h") + " root: " + path;
  if (group || others) found.mend += (found.mend.empty() ? "" : " && ") + ("chmod go-w " + path);
  if (S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX) != 0)
    found.mend.clear();  // it is for everybody
  return found;
}

// What is left to resolve, its first part last.
void push_parts(std::vector<std::string>& rest, const std::string& path) {
  std::vector<std::string> parts;
  std::istringstream text(path);
  for (std::string part; std::getline(text, part, '/');) {
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  rest.insert(rest.end(), parts.rbegin(), parts.rend());
}

// The files in what ld.so prints with LD_TRACE_LOADED_OBJECTS: "\tNAME => FILE (0x...)", or
// "\tFILE (0x...)".
std::set<std::string> traced_files(const std::string& output) {
  std::set<std::string> files;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const size_t start = line.find('/'), end = line.rfind(" (0x");
    if (start != std::string::npos && end != std::string::npos && start < end)
      files.insert(line.substr(start, end - start));
  }
  return files;
}

std::set<std::string> trace(const Layout& layout, const std::string& preload) {
  const ChildResult result = run_child(
      layout,
      {"/usr/bin/env", "-i", "LD_TRACE_LOADED_OBJECTS=1", "LD_PRELOAD=" + preload, layout.binary},
      kLimitMs, Visibility::kSystemWide);
  return traced_files(result.output);
}

}  // namespace

Untrusted find_untrusted(const std::string& path) {
  // Each part is looked at only when its folder was found to be root's alone, so nobody can
  // exchange it between this look and the next, or after all of them.
  std::string done;  // folders, none a link
  std::vector<std::string> rest;
  push_parts(rest, path);
  int links = 0;
  for (std::string at = "/";;) {
    struct stat st;
    if (lstat(at.c_str(), &st) != 0) return {"cannot look at " + at + ": " + strerror(errno), {}};
    if (Untrusted found = judge(at, st)) return found;
    if (S_ISLNK(st.st_mode)) {
      char target[PATH_MAX];
      const ssize_t size = readlink(at.c_str(), target, sizeof target);
      if (size < 0 || size == sizeof target || ++links > kMostLinks)
        return {"cannot follow the link " + at, {}};
      if (target[0] == '/') done.clear();
      push_parts(rest, std::string(target, static_cast<size_t>(size)));
    } else {
      done = at == "/" ? "" : at;
    }
    while (!rest.empty() && rest.back() == "..") {
      rest.pop_back();
      done.erase(std::min(done.rfind('/'), done.size()));
    }
    if (rest.empty()) return {};
    at = done + "/" + rest.back();
    rest.pop_back();
  }
}

std::vector<std::string> loaded_files(const Layout& layout) {
  // The stack is loaded from beside the preload library (preload/core.c).
  std::vector<std::string> files = {layout.preload, layout.core, layout.provider,
                                    directory_of(layout.preload) + "/libuiwarp.so.0"};
  std::string list;
  for (const std::string& file : files) list += (list.empty() ? "" : ":") + file;
  // What a program gets without us is not ours to judge: other entries of /etc/ld.so.preload, libc.
  const std::set<std::string> without = trace(layout, "");
  for (const std::string& file : trace(layout, list)) {
    if (without.count(file) == 0) files.push_back(file);
  }
  return files;
}

}  // namespace uiw::tool
