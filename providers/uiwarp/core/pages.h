// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Page-aligned memory for data that the kernel copies. If no bytes are in flight, the kernel stores
// TCP's bytes from the beginning of a page. Copying from there to memory from malloc(), which
// begins 16 bytes into a page, is slow on AMD (core/copy.h).
//
// It comes from the kernel and is given back at once when freed. malloc() would keep much of it:
// after the first buffer of a size was freed, it takes others from its heap (mallopt(3),
// M_MMAP_THRESHOLD), which cannot shrink below the last small object in use. Thread: any.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

// The address sanitizer finds accesses beyond the end only in memory from malloc().
#if defined(__SANITIZE_ADDRESS__)
#define UIW_PAGES_BY_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UIW_PAGES_BY_MALLOC 1
#endif
#endif

namespace uiw::core {

inline constexpr size_t kPage = 4096;

inline constexpr size_t whole_pages(size_t size) {
  return (size + kPage - 1) / kPage * kPage;
}

#ifdef UIW_PAGES_BY_MALLOC

struct FreePages {
  size_t size = 0;
  void operator()(uint8_t* memory) const { operator delete[](memory, std::align_val_t{kPage}); }
};
inline uint8_t* map_pages(size_t size) {
  return static_cast<uint8_t*>(operator new[](size, std::align_val_t{kPage}, std::nothrow));
}

#else

struct FreePages {
  size_t size = 0;  // of the whole mapping
  void operator()(uint8_t* memory) const { munmap(memory, size); }
};
inline uint8_t* map_pages(size_t size) {
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

#endif

using Pages = std::unique_ptr<uint8_t[], FreePages>;

// `size` bytes, not initialized. Null when out of memory.
inline Pages allocate_pages(size_t size) {
  return Pages(map_pages(whole_pages(size)), FreePages{whole_pages(size)});
}

}  // namespace uiw::core
