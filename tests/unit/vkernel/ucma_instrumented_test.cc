// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What instruments are told of ids.
#include <vector>

#include "core/instrumented.h"
#include "uiwarp/uiwarp-verbs.h"
#include "unit/vkernel/ucma_rig.h"

namespace uiw::vkernel::test {
namespace {

std::vector<uint64_t> taken, destroyed;

class UcmaInstrumentedTest : public UcmaTest {
 protected:
  UcmaInstrumentedTest() {
    taken.clear();
    destroyed.clear();
    table_.cm_event_taken = [](uint64_t uid, uint32_t, int) { taken.push_back(uid); };
    table_.cm_id_destroyed = [](uint64_t uid, uint32_t events) {
      destroyed.insert(destroyed.end(), {uid, events});
    };
    core::instrumented = &table_;
  }
  ~UcmaInstrumentedTest() override { core::instrumented = nullptr; }

  uiwarp_verbs table_{};
};

TEST_F(UcmaInstrumentedTest, HearsOfEventsThatAreTakenAndOfTheEnd) {
  const int fd = open_channel();
  make_listener(fd, 100);
  const uint32_t id = make_resolved(fd, 200);
  EXPECT_EQ(taken, (std::vector<uint64_t>{200, 200}));
  EXPECT_TRUE(destroyed.empty());
  EXPECT_EQ(2u, destroy_id(fd, id));
  EXPECT_EQ(destroyed, (std::vector<uint64_t>{200, 2}));
}

}  // namespace
}  // namespace uiw::vkernel::test
