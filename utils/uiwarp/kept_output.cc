// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "kept_output.h"

#include <algorithm>
#include <cinttypes>

namespace uiw::tool {

void KeptOutput::add(std::string_view octets) {
  const size_t first = std::min(octets.size(), kKept - first_.size());
  first_ += octets.substr(0, first);
  octets.remove_prefix(first);
  const size_t room = std::min(octets.size(), kKept - last_.size());
  last_ += octets.substr(0, room);
  octets.remove_prefix(room);
  left_out_ += octets.size();
  for (const char each : octets) {
    last_[oldest_] = each;
    oldest_ = (oldest_ + 1) % kKept;
  }
}

void KeptOutput::print(FILE* to) const {
  fwrite(first_.data(), 1, first_.size(), to);
  if (left_out_ > 0)
    fprintf(to, "\nuiwarp: %" PRIu64 " bytes of the output are left out here\n", left_out_);
  fwrite(last_.data() + oldest_, 1, last_.size() - oldest_, to);
  fwrite(last_.data(), 1, oldest_, to);
  fflush(to);
}

}  // namespace uiw::tool
