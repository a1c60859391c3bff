// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "counters/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "core/file_limit.h"
#include "core/generation.h"
#include "core/gid.h"
#include "core/log.h"
#include "core/per_process.h"
#include "core/raw_sys.h"

namespace uiw::counters {
namespace {

constexpr uint32_t kGrowBy = 64;  // slots

class File {
 public:
  // Null: there is no room. `index` from 1.
  Slot* take(uint32_t& index);
  void give_back(Slot& slot);
  void open(Create create);
  int descriptor() const { return fd_; }
  std::mutex mutex;

 private:
  Slot* slots() { return reinterpret_cast<Slot*>(base_ + kSlotSize); }
  bool grow();
  Slot* sum_of(const char* device);

  enum class Stage { kNotOpened, kOpen, kRefused };
  Stage stage_ = Stage::kNotOpened;
  int fd_ = -1;
  uint8_t* base_ = nullptr;
  uint32_t used_ = 0, there_ = 0;  // slots that were taken once, and that have memory
  std::vector<Slot*> free_, sums_;
};

constinit core::PerProcess<File> g_file;
constinit std::atomic<Create> g_create{nullptr};

// All of it is mapped at once, beyond the end too: slots never move. What has no memory yet cannot
// be read either: valgrind looks for pointers in all that can be, and a SIGBUS for each word there
// took it half a minute.
void File::open(Create create) {
  if (stage_ != Stage::kNotOpened) return;
  stage_ = Stage::kRefused;
  if (!create) return;
  fd_ = create();
  if (fd_ < 0) {
    core::log(core::LogLevel::kInfo,
              "counters are not published, uiwarp stat will not show them: %s",
              strerrordesc_np(-fd_));
    return;
  }
  constexpr size_t kSize = kSlotSize * (size_t{kMostSlots} + 1);
  void* const mapped = mmap(nullptr, kSize, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
  if (mapped == MAP_FAILED) return;
  madvise(mapped, kSize, MADV_DONTDUMP);
  base_ = static_cast<uint8_t*>(mapped);
  if (!grow()) return;
  auto* const header = new (base_) Header;
  prctl(PR_GET_NAME, header->program);
  stage_ = Stage::kOpen;
}

// Memory is there before it is touched: where there is none a store would be a SIGBUS.
bool File::grow() {
  if (there_ + kGrowBy > kMostSlots) return false;
  const off_t from = there_ == 0 ? 0 : static_cast<off_t>(kSlotSize * (size_t{there_} + 1));
  const off_t to = static_cast<off_t>(kSlotSize * (size_t{there_} + kGrowBy + 1));
  if (!core::may_write_up_to(static_cast<uint64_t>(to))) return false;
  if (core::sys::fallocate(fd_, 0, from, to - from) != 0) return false;
  if (mprotect(base_, static_cast<size_t>(to), PROT_READ | PROT_WRITE) != 0) return false;
  there_ += kGrowBy;
  return true;
}

Slot* File::take(uint32_t& index) {
  if (stage_ != Stage::kOpen) return nullptr;
  Slot* slot;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else if (used_ < there_ || grow()) {
    slot = slots() + used_++;
  } else {
    return nullptr;
  }
  index = static_cast<uint32_t>(slot - slots()) + 1;
  return new (slot) Slot;
}

Slot* File::sum_of(const char* device) {
  for (Slot* sum : sums_)
    if (std::strcmp(sum->device, device) == 0) return sum;
  return nullptr;
}

void File::give_back(Slot& slot) {
  const bool counted = slot.kind.load(std::memory_order_relaxed) != Kind::kCompletionQueue;
  Slot* const sum = counted ? sum_of(slot.device) : nullptr;
  // The first one that ends is the sum.
  if (counted && !sum) {
    slot.kind.store(Kind::kEnded, std::memory_order_release);
    sums_.push_back(&slot);
    return;
  }
  auto& moves = reinterpret_cast<Header*>(base_)->moves;
  moves.fetch_add(1, std::memory_order_seq_cst);
  if (sum) add(*sum, slot);
  slot.kind.store(Kind::kFree, std::memory_order_seq_cst);
  moves.fetch_add(1, std::memory_order_seq_cst);
  free_.push_back(&slot);
}

}  // namespace

void set_creator(Create create) {
  g_create.store(create, std::memory_order_release);
}

Lent::Lent(Kind kind, std::string_view device, uint32_t number)
    : slot_(nullptr), generation_(core::generation()) {
  if (File* const file = g_file.get()) {
    const std::lock_guard lock(file->mutex);
    file->open(g_create.load(std::memory_order_acquire));
    slot_ = file->take(index_);
  }
  if (!slot_) slot_ = new (std::nothrow) Slot;
  if (!slot_) slot_ = &g_nowhere;
  slot_->number = number;
  device.copy(slot_->device, kDeviceName - 1);
  slot_->kind.store(kind, std::memory_order_release);
}

Lent::~Lent() {
  if (slot_ == &g_nowhere || generation_ != core::generation()) return;
  if (index_ == 0) {
    delete slot_;
    return;
  }
  File* const file = g_file.get();  // made by the constructor
  const std::lock_guard lock(file->mutex);
  file->give_back(*slot_);
}

namespace {

void store(const sockaddr_storage& from, std::atomic<uint64_t> (&address)[2],
           std::atomic<uint32_t>& port) {
  const in6_addr gid = core::gid_of(from);
  uint64_t halves[2];
  std::memcpy(halves, &gid, sizeof halves);
  for (int i = 0; i < 2; ++i) address[i].store(halves[i], std::memory_order_relaxed);
  port.store(core::port_of(from), std::memory_order_relaxed);
}

}  // namespace

void set_connected(Slot& slot, const sockaddr_storage& local, const sockaddr_storage& peer) {
  store(local, slot.local, slot.local_port);
  store(peer, slot.peer, slot.peer_port);
  slot.connected.store(1, std::memory_order_release);
}

int own_file() {
  File* const file = g_file.get();
  if (!file) return -1;
  const std::lock_guard lock(file->mutex);
  return file->descriptor();
}

}  // namespace uiw::counters
