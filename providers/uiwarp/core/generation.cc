// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/generation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace uiw::core {
namespace {

using Word = std::atomic<unsigned>;

constinit std::atomic<Word*> g_page{nullptr};  // value 0: not drawn yet in this process
constinit std::atomic<unsigned> g_drawn{0};  // copied by forks, so a child's is never its parent's

// The page, created if needed; null when the kernel gives none.
Word* page() {
  Word* known = g_page.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  void* memory =
      mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, sizeof(Word), MADV_WIPEONFORK) != 0) {
    munmap(memory, sizeof(Word));
    return nullptr;
  }
  Word* fresh = new (memory) Word(0);
  if (g_page.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return fresh;
  munmap(memory, sizeof(Word));
  return known;
}

unsigned draw() {
  Word* const word = page();
  if (word == nullptr) return static_cast<unsigned>(getpid());
  unsigned drawn = 0;
  const unsigned next = g_drawn.fetch_add(1, std::memory_order_relaxed) + 1;
  return word->compare_exchange_strong(drawn, next, std::memory_order_relaxed) ? next : drawn;
}

}  // namespace

unsigned generation() {
  const Word* const word = g_page.load(std::memory_order_acquire);
  const unsigned drawn = word == nullptr ? 0 : word->load(std::memory_order_relaxed);
  return drawn != 0 ? drawn : draw();
}

}  // namespace uiw::core
