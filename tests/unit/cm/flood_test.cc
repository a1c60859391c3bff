// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Strangers who connect to everything of a process at once, as fast as they can and from another
// process: half of the descriptors stay the program's, and its peers get in.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "support/descriptor_limit.h"
#include "unit/cm/rig.h"
#include "unit/engine/support.h"
#include "unit/rendezvous/qpn_listeners.h"

namespace uiw::cm::test {
namespace {

constexpr rlim_t kAllowed = 256;  // descriptors of the process under attack

// What the peer of a queue pair sends to its listener.
class AtQpnListener : public rendezvous::QpnListeners {
 public:
  using QpnListeners::ask, QpnListeners::call, QpnListeners::hello, QpnListeners::peer_of,
      QpnListeners::prove;
};

// A process of its own that begins connections: silent ones, with half a Request and with a whole
// one. It closes none before it has many.
class Flood {
 public:
  explicit Flood(const std::vector<sockaddr_storage>& places) {
    void* const shared =
        mmap(nullptr, sizeof *begun_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    begun_ = new (shared) std::atomic<uint32_t>(0);
    const Octets request = RawPeer::encoded(request_frame());
    child_ = fork();
    if (child_ == 0) run(places, request);
  }
  ~Flood() {
    EXPECT_GT(child_, 0);
    if (child_ > 0) {
      EXPECT_EQ(kill(child_, SIGKILL), 0);
      EXPECT_EQ(waitpid(child_, nullptr, 0), child_);
    }
    munmap(begun_, sizeof *begun_);
  }
  uint32_t begun() const { return begun_->load(); }

 private:
  static constexpr size_t kHeld = 900;
  [[noreturn]] void run(const std::vector<sockaddr_storage>& places, const Octets& request) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const uiw::test::DescriptorLimit all(uiw::test::DescriptorLimit::most());
    static int held[kHeld];
    for (size_t i = 0;; ++i) {
      int& fd = held[i % kHeld];
      if (i >= kHeld) close(fd);
      fd = socket(AF_INET, SOCK_STREAM, 0);
      const sockaddr_storage& place = places[i % places.size()];
      if (connect(fd, reinterpret_cast<const sockaddr*>(&place), sizeof(sockaddr_in)) != 0)
        continue;
      const size_t says = i / places.size() % 3 * request.size() / 2;
      if (says > 0) send(fd, request.data(), says, MSG_NOSIGNAL);
      ++*begun_;
    }
  }

  std::atomic<uint32_t>* begun_;
  pid_t child_;
};

// Opens files all the time, as the program does.
class Opener {
 public:
  ~Opener() {
    stop_ = true;
    thread_.join();
    EXPECT_EQ(failed_, 0u) << "of " << opened_;
  }

 private:
  std::atomic<bool> stop_{false};
  uint32_t opened_ = 0, failed_ = 0;
  std::thread thread_{[this] {
    while (!stop_) {
      const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (fd < 0) ++failed_;
      if (fd >= 0) close(fd);
      ++opened_;
      sched_yield();
    }
  }};
};

class FloodTest : public ConnectionTest {
 protected:
  void SetUp() override {
    settings_.request_timeout_ms = 500;  // 20 ms where others wait
    ConnectionTest::SetUp();
  }
  void TearDown() override {
    ConnectionTest::TearDown();
    rendezvous::close_idle_ports();
  }
};

TEST_F(FloodTest, HalfOfTheDescriptorsAreTheProgramsAndPeersGetIn) {
  if (uiw::test::DescriptorLimit::most() < 2000) GTEST_SKIP() << "ulimit -Hn is too low";
  const uiw::test::DescriptorLimit few(kAllowed);
  new_listener(33);
  const sockaddr_storage other = listen_address_;
  new_listener(34);
  rendezvous::Party party(*engine_);
  ASSERT_EQ(party.search_peer(AtQpnListener::peer_of(party)), 0);
  settle();
  const int before = uiw::test::open_descriptors();
  Opener program;
  const Flood flood(
      {other, listen_address_, ip("127.0.0.1", rendezvous::port_of(party.name.qp_num))});

  // Nobody fetches what comes. Beside the strangers' there are those of this test, and one that is
  // just being closed.
  int most = 0;
  ASSERT_TRUE(uiw::test::wait_until([&] {
    most = std::max(most, uiw::test::open_descriptors());
    return flood.begun() > 4000;
  }));
  EXPECT_LE(most, before + static_cast<int>(kAllowed / 2) + 4);

  // A peer at the second listener, whose Requests are fetched now. It comes again when it had to
  // make room for others before its Request was fetched, and was rejected for that.
  uint8_t calls = 0;
  ASSERT_TRUE(uiw::test::wait_until([&] {
    const uint8_t says[] = {'g', 'o', 'o', 'd', ++calls};
    mpa::StartupFrame frame = request_frame();
    set_private_data(frame, says);
    RawPeer good = dial();
    if (!good.try_send(frame)) return false;
    while (!good.is_answered()) {
      const Event event = channel_.expect(EventType::kConnectRequest);
      const bool came =
          data_of(event.param)
              .starts_with(std::string_view(reinterpret_cast<const char*>(says), sizeof says));
      destroy(event.id);
      if (came) return good.receive_frame(mpa::FrameKind::kReply).reject;
    }
    return false;
  }));

  // And one of the queue pair, which comes again when it was sent off, too.
  const rendezvous::HandshakeMessage says = AtQpnListener::hello(party);
  std::optional<uiw::test::RawPeer> peer;
  std::optional<rendezvous::HandshakeMessage> challenge;
  ASSERT_TRUE(uiw::test::wait_until([&] {
    peer.emplace(AtQpnListener::call(party));
    challenge = AtQpnListener::ask(*peer, says);
    return challenge.has_value();
  }));
  AtQpnListener::prove(*peer, says, *challenge);
}

}  // namespace
}  // namespace uiw::cm::test
