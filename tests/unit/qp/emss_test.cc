// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// MULPDU follows the effective MSS (RFC 5044 4.5, conformance MF-15): FPDUs built after a change
// fit, those before it are not cut again.
#include <gtest/gtest.h>

#include "support/marked_stream.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

TEST(Emss, FpdusBuiltAfterAChangeFit) {
  for (bool markers : {false, true}) {
    Machine m({.tx_markers = markers, .emss = 1460});
    Buffer from(m.memory, pattern(4 << 20));
    m.post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, 1).to(0, 9));
    Octets stream;
    std::vector<size_t>
        mulpdu_until;  // for the FPDUs of one batch, with the stream's size behind it
    std::vector<size_t> ends;
    const uint32_t sizes[] = {1460, 576, 100, 8948, 1448};
    for (size_t batch = 0; m.tx().fill(); ++batch) {
      mulpdu_until.push_back(mpa::mulpdu(sizes[std::min<size_t>(batch, 4)], markers));
      // In the middle of a batch.
      const Octets first = m.pending();
      m.take(first.size() / 2);
      m.tx().set_emss(sizes[std::min<size_t>(batch + 1, 4)]);
      const Octets second = m.pending();
      ASSERT_EQ(second.size(), first.size() - first.size() / 2);
      m.take(second.size());
      stream = concat(std::move(stream), first);
      ends.push_back(stream.size());
    }
    ASSERT_GT(ends.size(), 5u);
    // Where each FPDU ends says of which batch it is.
    MarkedStream marked;
    size_t at = 0, batch = 0;
    uint64_t octets = 0;
    for (const Octets& ulpdu : markers ? marked_ulpdus_of(stream) : ulpdus_of(stream)) {
      at =
          markers ? (marked.next(ulpdu, false), marked.position()) : at + fpdu(ulpdu, false).size();
      const bool last = octets + ulpdu.size() - 14 == from.size();
      if (last) {
        ASSERT_LE(ulpdu.size(), mulpdu_until[batch]);
      } else {
        ASSERT_EQ(ulpdu.size(), mulpdu_until[batch]);
      }
      octets += ulpdu.size() - 14;
      if (at == ends[batch]) ++batch;
    }
    EXPECT_EQ(octets, from.size());
    EXPECT_EQ(batch, ends.size());
  }
}

}  // namespace
}  // namespace uiw::test
