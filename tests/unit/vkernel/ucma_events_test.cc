// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The descriptor as applications poll it, and waiting for events.
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>

#include <atomic>
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>

#include "unit/vkernel/ucma_rig.h"

namespace uiw::vkernel::test {
namespace {

bool readable(int fd) {
  pollfd state{fd, POLLIN, 0};
  return poll(&state, 1, 0) == 1;
}

class UcmaEventsTest : public UcmaTest {
 protected:
  void SetUp() override {
    UcmaTest::SetUp();
    listen_address_ = cm::test::ip("127.0.0.1", 7);
  }
  // Queues one ADDR_RESOLVED.
  static uint32_t make_event(int fd) {
    const uint32_t id = create_id(fd, 1);
    resolve_ip(fd, id, cm::test::ip("127.0.0.1", 7));
    return id;
  }
};

TEST_F(UcmaEventsTest, ReadableExactlyWhileEventsAreQueued) {
  const int fd = open_channel(O_CLOEXEC | O_NONBLOCK);
  EXPECT_FALSE(readable(fd));
  EXPECT_EQ(EAGAIN, try_event(fd));
  make_event(fd);
  const uint32_t second = make_event(fd);
  EXPECT_TRUE(readable(fd));
  get_event(fd, 0);
  EXPECT_TRUE(readable(fd));
  destroy_id(fd, second);
  EXPECT_FALSE(readable(fd));
  EXPECT_EQ(EAGAIN, try_event(fd));
}

// A program that fetches one event for each edge.
TEST_F(UcmaEventsTest, AnEventBehindAnotherIsAnEdge) {
  const int fd = open_channel(O_CLOEXEC | O_NONBLOCK);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {EPOLLIN | EPOLLET, {}};
  ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
  make_event(fd);
  EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
  make_event(fd);
  get_event(fd, 0);
  EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
  get_event(fd, 0);
  EXPECT_FALSE(readable(fd));
  close(epoll);
}

TEST_F(UcmaEventsTest, MigrationMovesReadability) {
  const int from = open_channel(), to = open_channel();
  const uint32_t id = make_event(from);
  rdma_ucm_migrate_resp response{};
  ASSERT_EQ(0,
            command(to, kMigrateId,
                    rdma_ucm_migrate_id{address_of(&response), id, static_cast<uint32_t>(from)}));
  EXPECT_FALSE(readable(from));
  EXPECT_TRUE(readable(to));
  get_event(to, 0);
}

TEST_F(UcmaEventsTest, NonBlockingIsWhatTheDescriptorSaysNow) {
  const int fd = open_channel();
  ASSERT_EQ(0, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
  EXPECT_EQ(EAGAIN, try_event(fd));
}

TEST_F(UcmaEventsTest, BlockedCallGetsTheEventOfAnotherThread) {
  const int fd = open_channel();
  std::thread waiter([&] { get_event(fd, 0); });
  make_event(fd);
  waiter.join();
  EXPECT_FALSE(readable(fd));
}

TEST_F(UcmaEventsTest, EveryWaiterGetsOneEvent) {
  const int fd = open_channel();
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) waiters.emplace_back([&] { get_event(fd, 0); });
  for (int i = 0; i < 4; ++i) make_event(fd);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_FALSE(readable(fd));
}

std::atomic<int> g_handler_runs{0};

// SIGUSR1 only counts, from here to the end of the scope.
class Handler {
 public:
  explicit Handler(int flags) {
    struct sigaction action {};
    action.sa_handler = [](int) { ++g_handler_runs; };
    action.sa_flags = flags;
    g_handler_runs = 0;
    EXPECT_EQ(0, sigaction(SIGUSR1, &action, &before_));
  }
  ~Handler() { sigaction(SIGUSR1, &before_, nullptr); }

 private:
  struct sigaction before_;
};

TEST_F(UcmaEventsTest, SignalInterruptsTheWait) {
  const Handler handler(0);
  const int fd = open_channel();
  std::atomic<bool> done{false};
  int error = 0;
  std::thread waiter([&] {
    error = try_event(fd);
    done = true;
  });
  // A signal before the wait has begun interrupts nothing, so go on until one did.
  while (!done) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  waiter.join();
  EXPECT_EQ(EINTR, error);
  EXPECT_GT(g_handler_runs, 0);
}

// As a kernel's write() does, which programs rely on that end by a flag: rdma_get_cm_event() is not
// to fail when the handler was installed with SA_RESTART, or by signal().
TEST_F(UcmaEventsTest, AHandlerThatRestartsCallsDoesNotInterruptTheWait) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer calls a handler when a system call has returned";
#endif
  const Handler handler(SA_RESTART);
  const int fd = open_channel();
  std::atomic<bool> done{false};
  int error = -1;
  std::thread waiter([&] {
    error = try_event(fd);
    done = true;
  });
  // Some of them come before the wait has begun, all but the first few while it lasts.
  for (int sent = 1; sent <= 1000 && !done; ++sent) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    while (g_handler_runs < sent && !done) std::this_thread::yield();
  }
  EXPECT_FALSE(done);
  make_event(fd);
  waiter.join();
  EXPECT_EQ(0, error);
}

TEST_F(UcmaEventsTest, WaitingThreadCanBeCancelled) {
  const int fd = open_channel();
  pthread_t waiter;
  ASSERT_EQ(0, pthread_create(
                   &waiter, nullptr,
                   [](void* channel) -> void* {
                     try_event(*static_cast<int*>(channel));
                     return nullptr;
                   },
                   const_cast<int*>(&fd)));
  pthread_cancel(waiter);
  void* result = nullptr;
  pthread_join(waiter, &result);
  EXPECT_EQ(PTHREAD_CANCELED, result);
  make_event(fd);
  get_event(fd, 0);
}

// Whether a thread of this process sleeps in the kernel.
bool sleeps(pid_t thread) {
  char path[64], line[256] = {};
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const bool read_it = fd >= 0 && read(fd, line, sizeof line - 1) > 0;
  close(fd);
  const char* state = read_it ? strrchr(line, ')') : nullptr;
  return state != nullptr && state[1] != 0 && state[2] == 'S';
}

// A thread that asks for events through `ask` until it is cancelled.
class Waiter {
 public:
  explicit Waiter(std::function<int()> ask) : ask_(std::move(ask)) {
    EXPECT_EQ(0, pthread_create(
                     &handle_, nullptr,
                     [](void* p) -> void* {
                       auto* self = static_cast<Waiter*>(p);
                       self->thread_ = gettid();
                       self->result_ = self->ask_();
                       return nullptr;
                     },
                     this));
  }
  void await_sleep() const {
    while (result_ == kNone && (thread_ == 0 || !sleeps(thread_))) sched_yield();
  }
  // What it was told; kNone: it had to be cancelled.
  int end() {
    pthread_cancel(handle_);
    pthread_join(handle_, nullptr);
    return result_;
  }
  static constexpr int kNone = -7;

 private:
  std::function<int()> ask_;
  pthread_t handle_;
  std::atomic<pid_t> thread_{0};
  std::atomic<int> result_{kNone};
};

// As in the kernel, where a program that closes its channel and leaves a thread behind in
// rdma_get_cm_event() gets no error there.
TEST_F(UcmaEventsTest, ClosingDoesNotReturnFromTheWait) {
  const int fd = open_channel();
  open_.clear();
  Waiter waiter([fd] { return try_event(fd); });
  waiter.await_sleep();
  close_channel(fd);
  EXPECT_EQ(Waiter::kNone, waiter.end());
}

TEST_F(UcmaEventsTest, ClosingJustBeforeTheWaitDoesNotReturnFromItEither) {
  auto events = std::make_unique<EventPipe>();
  int fd = -1;
  ASSERT_EQ(0, events->create(O_CLOEXEC, fd));
  close(fd);
  UcmaFile* file = make_ucma_file(std::move(events), manager_);
  file->closed();
  Waiter waiter([file, fd] {
    cm::Event event;
    return file->wait_for_event(fd, event);
  });
  waiter.await_sleep();
  EXPECT_EQ(Waiter::kNone, waiter.end());  // and drops the reference
}

// What rping before rdma-core 61 does: see last_reader.h.
TEST_F(UcmaEventsTest, ClosingWaitsForTheThreadThatIsBetweenTwoEvents) {
  auto events = std::make_unique<EventPipe>();
  int fd = -1;
  ASSERT_EQ(0, events->create(O_CLOEXEC, fd));
  ASSERT_EQ(0, register_file(fd, make_ucma_file(std::move(events), manager_, 600 * core::kSecond)));
  const pid_t closer = gettid();
  std::atomic<bool> has_one{false};
  Waiter waiter([&] {
    if (int error = try_event(fd)) return error;
    has_one = true;
    while (!sleeps(closer)) sched_yield();
    return try_event(fd);
  });
  make_event(fd);
  while (!has_one) sched_yield();
  close_channel(fd);
  EXPECT_EQ(Waiter::kNone, waiter.end());
}

TEST_F(UcmaEventsTest, ClosingWaitsNeitherForItselfNorForAThreadThatHasEnded) {
  for (bool another : {false, true}) {
    auto events = std::make_unique<EventPipe>();
    int fd = -1;
    ASSERT_EQ(0, events->create(O_CLOEXEC, fd));
    ASSERT_EQ(0,
              register_file(fd, make_ucma_file(std::move(events), manager_, 600 * core::kSecond)));
    make_event(fd);
    if (another) {
      std::thread([&] { get_event(fd, 0); }).join();
    } else {
      get_event(fd, 0);
    }
    close_channel(fd);
  }
}

TEST_F(UcmaEventsTest, ClosingDoesNotWaitForAThreadThatPolls) {
  auto events = std::make_unique<EventPipe>();
  int fd = -1;
  ASSERT_EQ(0, events->create(O_CLOEXEC | O_NONBLOCK, fd));
  ASSERT_EQ(0, register_file(fd, make_ucma_file(std::move(events), manager_, 600 * core::kSecond)));
  make_event(fd);
  std::binary_semaphore taken{0}, closed{0};
  std::thread poller([&] {
    get_event(fd, 0);
    taken.release();
    closed.acquire();
  });
  taken.acquire();
  close_channel(fd);
  closed.release();
  poller.join();
}

TEST_F(UcmaEventsTest, ManyEventsMoreThanThePipeHolds) {
  const int fd = open_channel(O_CLOEXEC | O_NONBLOCK);
  const uint32_t id = create_id(fd, 1);
  const struct {
    uint32_t id, reserved, event, status;
    uint64_t argument;
  } body{id, 0, 18, 0, 1};
  const int pipe_size = fcntl(fd, F_GETPIPE_SZ);
  const int count = pipe_size + 1000;
  for (int i = 0; i < count; ++i) ASSERT_EQ(0, command(fd, kWriteEvent, body));
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(readable(fd));
    get_event(fd, 18);
  }
  EXPECT_FALSE(readable(fd));
  EXPECT_EQ(EAGAIN, try_event(fd));
  EXPECT_EQ(static_cast<uint32_t>(count), destroy_id(fd, id));
}

TEST_F(UcmaEventsTest, ClosingAChannelEndsEverythingOnIt) {
  const int server = open_channel(), client = open_channel();
  make_listener(server, 100);
  rdma_ucm_connect connect{};
  connect.conn_param = param(1);
  connect.id = make_resolved(client, 200);
  ASSERT_EQ(0, command(client, kConnect, connect));
  rdma_ucm_accept accept{};
  accept.uid = 300;
  accept.conn_param = param(2);
  accept.id = get_event(server, 4).id;
  ASSERT_EQ(0, command(server, kAccept, accept));
  get_event(client, 9);
  get_event(server, 9);
  open_ = {client};
  close_channel(server);
  EXPECT_EQ(200u, get_event(client, 10).uid);
}

}  // namespace
}  // namespace uiw::vkernel::test
