// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Holds the bytes of an FPDU that is incomplete or has to wait for a receive. Holds memory only
// while it holds bytes, so that idle connections use none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bytes.h"
#include "core/pages.h"

namespace uiw::qp {

class RxStaging {
 public:
  RxStaging() = default;
  RxStaging(RxStaging&& other) noexcept;
  RxStaging& operator=(RxStaging&&) = delete;
  ~RxStaging() { clear(); }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  core::Bytes octets() const { return {data_.get(), size_}; }
  uint8_t* data() { return data_.get(); }

  // False when out of memory; nothing is added then.
  bool append(core::Bytes octets);
  void clear();

 private:
  core::Pages data_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace uiw::qp
