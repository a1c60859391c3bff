// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory that begins a page, for what the kernel copies to or from. TCP's octets begin one of the
// kernel's where nothing was on its way before, and to copy from there to where malloc() begins, 16
// octets into a page, is slow on AMD (core/copy.h). Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace uiw::core {

inline constexpr size_t kPage = 4096;

struct FreePages {
  void operator()(uint8_t* memory) const { std::free(memory); }
};
using Pages = std::unique_ptr<uint8_t[], FreePages>;

// `size` octets, not initialized. Null when out of memory.
inline Pages allocate_pages(size_t size) {
  return Pages(
      static_cast<uint8_t*>(std::aligned_alloc(kPage, (size + kPage - 1) / kPage * kPage)));
}

}  // namespace uiw::core
