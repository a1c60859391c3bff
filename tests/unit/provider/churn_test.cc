// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connections and regions that come and go by the thousand while some stay.
#include <atomic>
#include <thread>
#include <vector>

#include "connected.h"

namespace uiw::provider_test {
namespace {

class ConnectionChurn : public Connected {
 protected:
  // What a server like `rping -s -P` has for each client.
  struct Client {
    Ends ends;
    ibv_mr* regions[4] = {};
  };
  // With regions that come and go with it.
  Client begin() {
    Client client{connector_->connect(plain())};
    for (ibv_mr*& region : client.regions) {
      region = ibv_reg_mr(pd_, theirs_, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
      EXPECT_NE(region, nullptr) << strerror(errno);
    }
    return client;
  }
  void end(const Client& client) {
    for (ibv_mr* region : client.regions) EXPECT_EQ(ibv_dereg_mr(region), 0);
    connector_->disconnect(client.ends);
  }
  // A Send of 64 octets into the last region of that client.
  void exchange(const Client& client, uint64_t wr_id) {
    const ibv_mr* to = client.regions[3];
    ASSERT_EQ(post_recv(client.ends.b->qp, wr_id, ibv_sge{their_address(0), 64, to->lkey}), 0);
    ASSERT_EQ(post_send(client.ends.a->qp, wr_id, {our_address(0), 64, mr_->lkey}), 0);
    for (ibv_cq* cq : {cq_, peer_cq_}) {
      const ibv_wc wc = wait_for(cq);
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, wr_id);
    }
  }
};

// Thousands fill a table that forgets nothing; a sanitizer, with which each takes 5 to 20 ms, sees
// in hundreds what it can see.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kClients = 300;
#else
constexpr uint64_t kClients = 3000;
#endif

TEST_F(ConnectionChurn, ManyComeAndGoWhileTwoStay) {
  const Client first = begin(), second = begin();
  for (uint64_t i = 0; i < kClients && !HasFailure(); ++i) {
    const Client client = begin();
    if (i % 16 == 0) {
      for (const Client& each : {client, first, second}) exchange(each, i);
    }
    end(client);
  }
  end(first);
  end(second);
}

// An object that one thread destroys is not taken for the one that another thread has made in its
// place.
TEST_F(Verbs, ThreadsMakeAndDestroyObjectsBesideEachOther) {
  constexpr int kThreads = 4, kRounds = 1000, kAccess = IBV_ACCESS_LOCAL_WRITE;
  ibv_pd* const pd = ibv_alloc_pd(context_);
  ASSERT_NE(pd, nullptr);
  std::atomic<int> failures{0};
  const auto make_and_destroy = [&] {
    char memory[64];
    for (int i = 0; i < kRounds; ++i) {
      ibv_mw* const window = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
      if (!window || ibv_dealloc_mw(window) != 0) ++failures;
      ibv_td_init_attr none{};
      ibv_td* const thread_domain = ibv_alloc_td(context_, &none);
      if (!thread_domain || ibv_dealloc_td(thread_domain) != 0) ++failures;
      ibv_mr* const mr = ibv_reg_mr(pd, memory, sizeof memory, kAccess);
      if (!mr || ibv_dereg_mr(mr) != 0) ++failures;
      ibv_cq* const cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
      if (!cq || ibv_destroy_cq(cq) != 0) ++failures;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(make_and_destroy);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

}  // namespace
}  // namespace uiw::provider_test
