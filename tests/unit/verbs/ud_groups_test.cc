// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// UD queue pairs and multicast groups; and queue pairs that come and go while datagrams flow.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "core/explain.h"
#include "datagram/groups.h"
#include "ud.h"

namespace uiw::verbs {
namespace {

using datagram::Drop;
using test::datagram_of;
using test::kQkey;
using test::Stranger;

ibv_gid gid(const char* text) {
  const in6_addr address = uiw::test::gid(text);
  ibv_gid made;
  std::memcpy(&made, &address, sizeof made);
  return made;
}

// What `call` says, which fails with EINVAL.
template <class Call>
std::string said_of(Call&& call) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(call(), EINVAL);
  return testing::internal::GetCapturedStderr();
}

class UdGroups : public test::UdQueuePairs {
 protected:
  static int attach(uiwarp_qp* qp, const char* group) {
    const ibv_gid named = gid(group);
    return uiwarp_qp_attach(qp, &named);
  }
  static int detach(uiwarp_qp* qp, const char* group) {
    const ibv_gid named = gid(group);
    return uiwarp_qp_detach(qp, &named);
  }
};

constexpr char kGroup[] = "::ffff:239.77.3.4", kSame[] = "ff0e::ffff:239.77.3.4",
               kGroup6[] = "ff15::77:3:4";

// Of those attached each gets a copy, whichever name it uses, but the sender. (Groups of IPv6 have
// no route over a loopback interface.)
TEST_F(UdGroups, ReachAllButTheSender) {
  uiwarp_qp *sender = make_rts(), *first = make_rts(), *second = make_rts(), *other = make_rts();
  EXPECT_EQ(attach(sender, kGroup), 0);
  EXPECT_EQ(attach(first, kGroup), 0);
  EXPECT_EQ(attach(second, kSame), 0);
  EXPECT_EQ(attach(other, "::ffff:239.77.3.5"), 0);
  to_ = make_ah("::ffff:127.0.0.1", kGroup, 1);
  uint64_t at = 0;
  for (uiwarp_qp* qp : {sender, first, second, other}) ASSERT_EQ(post_receive(qp, ++at), 0);
  ASSERT_EQ(send(sender, core::kGroupQpNumber, "all", 0), 0);
  for (int i = 0; i < 2; ++i) {
    const ibv_wc wc = wait();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.src_qp, number_of(sender));
    EXPECT_EQ(received(wc.wr_id, wc), "all");
    EXPECT_EQ(wc.qp_num, number_of(wc.wr_id == 2 ? first : second));
  }
  // One behind it that only one of them gets.
  EXPECT_EQ(detach(second, kGroup), 0);
  ASSERT_EQ(post_receive(first, 6), 0);
  ASSERT_EQ(post_receive(second, 7), 0);
  ASSERT_EQ(send(sender, core::kGroupQpNumber, "one", 0), 0);
  const ibv_wc wc = wait();
  EXPECT_EQ(wc.wr_id, 6u);
  EXPECT_EQ(received(6, wc), "one");
  expect_none();
  EXPECT_EQ(detach(sender, kGroup), 0);
  EXPECT_EQ(detach(first, kGroup), 0);
  EXPECT_EQ(detach(other, "::ffff:239.77.3.5"), 0);
  for (uiwarp_qp* qp : {sender, first, second, other}) destroy(qp);
}

TEST_F(UdGroups, CheckTheQkeyAndTheNumber) {
  uiwarp_qp* qp = make_rts();
  ASSERT_EQ(attach(qp, kGroup), 0);
  ASSERT_EQ(post_receive(qp, 1), 0);
  Stranger peer;
  const sockaddr_in loop{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
  ip_mreqn device{};
  device.imr_address = loop.sin_addr;
  device.imr_ifindex = static_cast<int>(context_->device->ifindex);
  ASSERT_EQ(setsockopt(peer.fd(), IPPROTO_IP, IP_MULTICAST_IF, &device, sizeof device), 0);
  uint64_t before = drops(Drop::kQkey);
  peer.send(datagram::kGroupPort, datagram_of(core::kGroupQpNumber, peer.number(), kQkey + 1, "x"),
            kGroup);
  wait_for_drops(Drop::kQkey, before + 1);
  before = drops(Drop::kNoQueuePair);
  peer.send(datagram::kGroupPort, datagram_of(number_of(qp), peer.number(), kQkey, "x"), kGroup);
  wait_for_drops(Drop::kNoQueuePair, before + 1);
  // The port of the queue pair itself is not in the group.
  peer.send(port_of(qp), datagram_of(number_of(qp), peer.number(), kQkey, "x"), kGroup);
  before = drops(Drop::kForged);
  peer.send(datagram::kGroupPort, datagram_of(core::kGroupQpNumber, number_of(qp), kQkey, "forged"),
            kGroup);
  wait_for_drops(Drop::kForged, before + 1);
  peer.send(datagram::kGroupPort, datagram_of(core::kGroupQpNumber, peer.number(), kQkey, "good"),
            kGroup);
  EXPECT_EQ(received(1, wait()), "good");
  expect_none();
  EXPECT_EQ(detach(qp, kGroup), 0);
  destroy(qp);
}

TEST_F(UdGroups, AreRefusedAndHoldTheirMembers) {
  uiwarp_qp *ud = make_ud(), *rc = make_qp(cq_);
  for (const char* host : {"::ffff:127.0.0.1", "::1", "::"})
    EXPECT_EQ(attach(ud, host), EINVAL) << host;
  EXPECT_EQ(attach(rc, kGroup), EINVAL);
  EXPECT_EQ(detach(ud, kGroup), EINVAL) << "not attached";
  EXPECT_EQ(attach(ud, kGroup), 0);
  EXPECT_EQ(attach(ud, kSame), 0) << "twice is once";
  EXPECT_EQ(attach(ud, kGroup6), 0);
  uint32_t events;
  EXPECT_EQ(uiwarp_qp_destroy(ud, &events), EBUSY);
  EXPECT_EQ(detach(ud, kGroup), 0);
  EXPECT_EQ(detach(ud, kGroup), EINVAL);
  EXPECT_EQ(uiwarp_qp_destroy(ud, &events), EBUSY) << "the other group";
  EXPECT_EQ(detach(ud, kGroup6), 0);
  destroy(ud);
  destroy(rc);
}

TEST_F(UdGroups, SayWhyTheyAreRefused) {
  core::forget_explained();
  uiwarp_qp *ud = make_rts(), *rc = make_qp(cq_);
  EXPECT_THAT(said_of([&] { return attach(ud, "::ffff:127.0.0.1"); }),
              testing::HasSubstr("127.0.0.1 is the GID of no multicast group"));
  EXPECT_THAT(said_of([&] { return attach(rc, kGroup); }), testing::HasSubstr("is of RC type"));
  EXPECT_THAT(said_of([&] { return detach(ud, kGroup); }),
              testing::HasSubstr("is not attached to 239.77.3.4"));
  destroy(ud);
  destroy(rc);
}

TEST_F(UdGroups, EndAtTheirLimits) {
  ibv_device_attr_ex device;
  ASSERT_EQ(uiwarp_query_device(context_, &device, sizeof device), 0);
  uiwarp_qp* qp = make_ud();
  std::vector<std::string> groups;
  int error = 0;
  for (int i = 0; error == 0 && i < 1000; ++i) {
    const std::string group =
        "::ffff:239.78." + std::to_string(i / 200) + "." + std::to_string(i % 200);
    error = attach(qp, group.c_str());
    if (error == 0) groups.push_back(group);
  }
  EXPECT_EQ(error, ENOMEM);
  EXPECT_EQ(groups.size(), static_cast<size_t>(device.orig_attr.max_mcast_grp));
  for (const std::string& group : groups) EXPECT_EQ(detach(qp, group.c_str()), 0);
  std::vector<uiwarp_qp*> members;
  for (;;) {
    members.push_back(make_ud());
    if ((error = attach(members.back(), kGroup)) != 0) break;
  }
  EXPECT_EQ(error, ENOMEM);
  EXPECT_EQ(members.size() - 1, static_cast<size_t>(device.orig_attr.max_mcast_qp_attach));
  for (uiwarp_qp* member : members) {
    detach(member, kGroup);
    destroy(member);
  }
  destroy(qp);
}

// A child that does nothing until this goes.
class Idler {
 public:
  enum class Made { kByFork, kByClone };  // clone(2) calls no handlers
  explicit Idler(Made how) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    child_ =
        how == Made::kByFork ? fork() : static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child_ == 0) {
      close(ends[1]);
      char byte;
      _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    end_ = ends[1];
  }
  ~Idler() {
    close(end_);
    EXPECT_EQ(waitpid(child_, nullptr, 0), child_);
  }

 private:
  pid_t child_;
  int end_;
};

// Whether the host is in the groups that these words of /proc/net/igmp and igmp6 are for.
bool is_joined(const char* file, const char* word) {
  std::ifstream in(file);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  return all.find(word) != std::string::npos;
}
bool is_in_group() {
  return is_joined("/proc/net/igmp", "04034DEF");
}
bool is_in_group6() {
  return is_joined("/proc/net/igmp6", "ff150000000000000000007700030004");
}

// Neither the port nor the groups stay taken by a child that does nothing, when its parent has
// given them up.
TEST_F(UdGroups, AreLeftAlsoByAChild) {
  for (Idler::Made how : {Idler::Made::kByFork, Idler::Made::kByClone}) {
    SCOPED_TRACE(how == Idler::Made::kByFork ? "fork" : "clone");
    uiwarp_qp* qp = make_rts();
    const uint16_t port = port_of(qp);
    ASSERT_EQ(attach(qp, kGroup), 0);
    ASSERT_EQ(attach(qp, kGroup6), 0);
    EXPECT_TRUE(is_in_group());
    EXPECT_TRUE(is_in_group6());
    const Idler child(how);
    EXPECT_EQ(detach(qp, kGroup), 0);
    EXPECT_EQ(detach(qp, kGroup6), 0);
    EXPECT_FALSE(is_in_group());
    EXPECT_FALSE(is_in_group6());
    destroy(qp);
    if (how == Idler::Made::kByClone) continue;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    bool bound = false;
    while (!bound && std::chrono::steady_clock::now() < limit) bound = Stranger(port).bound();
    EXPECT_TRUE(bound);
  }
}

// What the parent still has is the parent's alone, and goes on there.
TEST_F(UdGroups, GoOnBesideAChild) {
  uiwarp_qp *sender = make_rts(), *member = make_rts();
  ASSERT_EQ(attach(member, kGroup), 0);
  to_ = make_ah("::ffff:127.0.0.1", kGroup, 1);
  const Idler child(Idler::Made::kByFork);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(post_receive(member, 1), 0);
    ASSERT_EQ(send(sender, core::kGroupQpNumber, "on", 0), 0);
    EXPECT_EQ(received(1, wait()), "on");
  }
  EXPECT_EQ(detach(member, kGroup), 0);
  destroy(sender);
  destroy(member);
}

class UdChurn : public UdGroups {};

// Queue pairs are made, attached, moved and destroyed while datagrams for all of their numbers come
// in. What is received is whole, and for a queue pair that there is.
TEST_F(UdChurn, QueuePairsComeAndGoWhileDatagramsFlow) {
  std::atomic<uint32_t> numbers[4] = {};
  std::atomic<bool> over{false};
  std::thread flood([&] {
    Stranger peer;
    const uint32_t from = peer.number();
    std::mt19937 random(1);
    while (!over.load(std::memory_order_relaxed)) {
      const uint32_t to = numbers[random() % 4].load(std::memory_order_relaxed);
      if (to == 0) continue;
      const std::string text(random() % 300, static_cast<char>('a' + random() % 26));
      const sockaddr_in6 at{AF_INET6, htons(core::port_of(to)), 0,
                            uiw::test::gid("::ffff:127.0.0.1"), 0};
      const std::string datagram = datagram_of(to, from, kQkey, text);
      sendto(peer.fd(), datagram.data(), datagram.size(), 0, reinterpret_cast<const sockaddr*>(&at),
             sizeof at);
    }
  });
  uiwarp_qp* qps[4] = {};
  std::mt19937 random(2);
  uint64_t whole = 0;
  for (int step = 0; (step < 3000 || whole == 0) && !HasFailure(); ++step) {
    const size_t i = random() % 4;
    if (!qps[i]) {
      qps[i] = make_ud();
      ASSERT_TRUE(qps[i]);
      to_init(qps[i]);
      numbers[i] = number_of(qps[i]);
    } else if (random() % 8 == 0) {
      destroy(qps[i]);
      qps[i] = nullptr;
      numbers[i] = 0;
    } else if (random() % 8 == 0) {
      EXPECT_EQ(modify(qps[i], IBV_QPS_RESET), 0);
      to_rts(qps[i]);
    } else if (random() % 8 == 0) {
      to_error(qps[i]);
    }
    if (qps[i]) {
      if (state_of(qps[i]) == IBV_QPS_INIT) modify(qps[i], IBV_QPS_RTR);
      for (int n = 0; n < 4; ++n) post_receive(qps[i], 1 + i, 512);
    }
    ibv_wc wc;
    while (uiwarp_cq_poll(cq_, 1, &wc) == 1) {
      EXPECT_EQ(wc.qp_num, numbers[wc.wr_id - 1]);
      if (wc.status != IBV_WC_SUCCESS) {
        EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
        continue;
      }
      EXPECT_LT(wc.byte_len, test::kGrh + 300);
      ++whole;
    }
  }
  over = true;
  flood.join();
  for (uiwarp_qp* qp : qps)
    if (qp) destroy(qp);
}

}  // namespace
}  // namespace uiw::verbs
