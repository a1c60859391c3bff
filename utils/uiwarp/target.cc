// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "system_wide.h"

namespace uiw::tool {
namespace {

bool is_program(const std::string& path, int& error) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return false;
  if (S_ISREG(st.st_mode) && access(path.c_str(), X_OK) == 0) return true;
  error = EACCES;
  return false;
}

enum class Kind { kOther, kDynamic, kOfMusl, kStatic, kForeignClass };

// Reads the ELF headers only; anything malformed is kOther, the kernel will say what is wrong.
Kind elf_kind(int fd) {
  Elf64_Ehdr header;
  if (pread(fd, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header))
    return Kind::kOther;
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return Kind::kOther;
  const unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (header.e_ident[EI_CLASS] != own_class) return Kind::kForeignClass;
  for (unsigned i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr program;
    const off_t at = static_cast<off_t>(header.e_phoff + i * sizeof program);
    if (pread(fd, &program, sizeof program, at) != static_cast<ssize_t>(sizeof program))
      return Kind::kOther;
    if (program.p_type != PT_INTERP) continue;
    char loader[64] = "";
    const size_t size = std::min<size_t>(program.p_filesz, sizeof loader - 1);
    if (pread(fd, loader, size, static_cast<off_t>(program.p_offset)) < 0) return Kind::kOther;
    return strstr(loader, "/ld-musl") ? Kind::kOfMusl : Kind::kDynamic;
  }
  return Kind::kStatic;
}

// The interpreter of a "#!" script, or empty.
std::string interpreter_of(int fd) {
  char line[256];
  const ssize_t size = pread(fd, line, sizeof line - 1, 0);
  if (size < 3 || line[0] != '#' || line[1] != '!') return {};
  line[size] = '\0';
  const char* start = line + 2 + strspn(line + 2, " \t");
  return std::string(start, strcspn(start, " \t\r\n"));
}

// Will the kernel start it in secure mode, where the loader drops LD_PRELOAD?
bool gains_privilege(int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0) return false;
  if ((st.st_mode & S_ISUID) && st.st_uid != geteuid()) return true;
  if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid()) return true;
  return geteuid() != 0 && fgetxattr(fd, "security.capability", nullptr, 0) > 0;
}

std::string inspect(const std::string& path, int depth) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};  // execute permission without read permission: nothing to learn
  std::string problem;
  const std::string interpreter = interpreter_of(fd);
  if (!interpreter.empty()) {
    if (depth == 0) problem = inspect(interpreter, depth + 1);
  } else if (gains_privilege(fd)) {
    if (preloaded_system_wide().empty())
      problem = path +
                " is set-uid, set-gid or has file capabilities, so the loader ignores LD_PRELOAD "
                "(`uiwarp enable` would reach it)";
  } else if (const Kind kind = elf_kind(fd); kind == Kind::kStatic) {
    problem = path + " is statically linked, so nothing can be preloaded into it";
  } else if (kind == Kind::kOfMusl) {
    problem = path + " is linked with musl, and uiwarp is made for glibc: build it for glibc";
  } else if (kind == Kind::kForeignClass) {
    problem = path + " is not a " + (sizeof(void*) == 8 ? "64" : "32") +
              "-bit program, so it cannot load this build of uiwarp";
  }
  close(fd);
  return problem;
}

}  // namespace

std::string find_program(const std::string& name, int& error) {
  error = ENOENT;
  if (name.empty()) return {};
  if (name.find('/') != std::string::npos) {
    if (is_program(name, error)) return name;
    if (errno == EACCES) error = EACCES;
    return {};
  }
  // A directory of PATH that may not be searched is passed over, as a shell does.
  const char* path = getenv("PATH");
  const std::string list = path ? path : "/usr/local/bin:/usr/bin:/bin";
  for (size_t at = 0; at <= list.size();) {
    size_t end = list.find(':', at);
    if (end == std::string::npos) end = list.size();
    const std::string directory = end > at ? list.substr(at, end - at) : ".";
    const std::string candidate = directory + "/" + name;
    if (is_program(candidate, error)) return candidate;
    at = end + 1;
  }
  return {};
}

std::string command_of(const Layout& layout) {
  int error = 0;
  char path[PATH_MAX];
  const std::string found = find_program("uiwarp", error);
  const bool is_it = realpath(found.c_str(), path) && path == layout.binary;
  return is_it ? "uiwarp" : layout.binary;
}

std::string why_invisible(const std::string& path) {
  return inspect(path, 0);
}

}  // namespace uiw::tool
