// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/startup_io.h"

#include <algorithm>
#include <cstring>

namespace uiw::cm {

void copy_private_data(ConnParam& to, core::Bytes private_data) {
  to.private_data_len =
      static_cast<uint8_t>(std::min<size_t>(private_data.size(), kMaxEventPrivateData));
  std::memcpy(to.private_data, private_data.data(), to.private_data_len);
}

}  // namespace uiw::cm
