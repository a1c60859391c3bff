// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/mailbox.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include "core/file_limit.h"
#include "core/raw_sys.h"

namespace uiw::faults {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr char kName[] = "uiwarp-faults";
constexpr char kAsk[] = "ask\n", kUse[] = "use\n";

void* map(int fd) {
  void* const at = mmap(nullptr, sizeof(Mailbox), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

Mailbox* make_mailbox(int& error) {
  error = EFBIG;
  if (!core::may_write_up_to(sizeof(Mailbox))) return nullptr;
  int fd = memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  error = errno;
  if (fd < 0) return nullptr;
  fd = core::sys::above_standard(fd);
  error = -fd;
  if (fd < 0) return nullptr;
  // Memory is there before it is touched.
  void* at = nullptr;
  if (fchmod(fd, 0600) == 0 && fallocate(fd, 0, 0, sizeof(Mailbox)) == 0 &&
      fcntl(fd, F_ADD_SEALS, kSeals) == 0)
    at = map(fd);
  error = errno;
  if (!at) {
    close(fd);
    return nullptr;
  }
  auto* const mailbox = new (at) Mailbox;
  mailbox->owner = getpid();
  error = 0;
  return mailbox;
}

Mailbox* map_mailbox(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0 || file.st_size != sizeof(Mailbox)) return nullptr;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return nullptr;
  auto* const mailbox = static_cast<Mailbox*>(map(fd));
  if (mailbox && mailbox->magic == Mailbox::kMagic) return mailbox;
  if (mailbox) unmap_mailbox(mailbox);
  return nullptr;
}

void unmap_mailbox(Mailbox* mailbox) {
  munmap(mailbox, sizeof(Mailbox));
}

Turn wait_while(Mailbox& mailbox, Turn turn, core::Nanoseconds limit) {
  const timespec time{limit / core::kSecond, limit % core::kSecond};
  if (mailbox.turn.load(std::memory_order_acquire) == turn)
    syscall(SYS_futex, &mailbox.turn, FUTEX_WAIT, turn, limit < 0 ? nullptr : &time, nullptr, 0);
  return mailbox.turn.load(std::memory_order_acquire);
}

bool pass_turn(Mailbox& mailbox, Turn from, Turn to) {
  if (!mailbox.turn.compare_exchange_strong(from, to, std::memory_order_acq_rel)) return false;
  syscall(SYS_futex, &mailbox.turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return true;
}

void write_text(Mailbox& mailbox, std::string_view text) {
  text = text.substr(0, Mailbox::kMostText);
  std::memcpy(mailbox.text, text.data(), text.size());
  mailbox.size.store(static_cast<uint32_t>(text.size()), std::memory_order_relaxed);
}

std::string read_text(const Mailbox& mailbox) {
  const uint32_t size = mailbox.size.load(std::memory_order_relaxed);
  return {mailbox.text, std::min(size, Mailbox::kMostText)};
}

std::string written(const Question& question) {
  if (!question.changes) return kAsk;
  return kUse + question.name + "\n" + question.text;
}

Question question_of(std::string_view text) {
  if (!text.starts_with(kUse)) return {};
  text.remove_prefix(std::strlen(kUse));
  const size_t end = std::min(text.find('\n'), text.size());
  return {true, std::string(text.substr(0, end)),
          std::string(text.substr(std::min(end + 1, text.size())))};
}

}  // namespace uiw::faults
