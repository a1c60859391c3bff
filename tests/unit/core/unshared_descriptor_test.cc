// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/unshared_descriptor.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <optional>

#include "core/raw_sys.h"
#include "support/forking_handler.h"
#include "support/in_child.h"

namespace uiw::core {
namespace {

bool is_open(int fd) {
  return fcntl(fd, F_GETFD) != -1;
}

int new_socket() {
  return sys::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

// A program whose descriptors are all closed by a handler of its own may have opened others by
// then.
TEST(UnsharedDescriptor, IsLeftAloneInAChildWhereItIsAnother) {
  test::in_child([] {
    static int number;
    // The handlers of a child run in the order in which they were registered: this is the first
    // test, so ours comes behind it.
    pthread_atfork(nullptr, nullptr, [] {
      const int file = open("/dev/null", O_RDONLY);
      dup2(file, number);
      close(file);
    });
    const UnsharedDescriptor one(new_socket());
    number = one.get();
    const pid_t child = fork();
    if (child == 0) _exit(is_open(number) ? 0 : 1);
    int status = 1;
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
  });
}

TEST(UnsharedDescriptor, IsClosedWithItsOwner) {
  std::optional<UnsharedDescriptor> one(new_socket());
  const int fd = one->get();
  EXPECT_TRUE(one->is_open());
  EXPECT_TRUE(is_open(fd));
  one->close();
  EXPECT_FALSE(one->is_open());
  EXPECT_FALSE(is_open(fd));
  const int other = new_socket();
  ASSERT_EQ(other, fd);
  one->close();
  one.reset();
  EXPECT_TRUE(is_open(other)) << "it has closed another's";
  sys::close(other);
}

TEST(UnsharedDescriptor, IsNoneInAChildWhichHasItsOwn) {
  UnsharedDescriptor first(new_socket()), second(new_socket()), third(new_socket());
  const int fds[] = {first.get(), second.get(), third.get()};
  second.close();
  const int plain = new_socket();
  test::in_child([&] {
    if (first.is_open() || third.is_open() || is_open(fds[0]) || is_open(fds[2])) return 1;
    if (!is_open(plain)) return 2;
    const int again = new_socket();
    if (again != fds[0]) return 3;
    first.close();
    if (!is_open(again)) return 4;
    UnsharedDescriptor own(again);
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(is_open(again) ? 1 : 0);
    int status = 1;
    if (waitpid(grandchild, &status, 0) != grandchild || status != 0) return 5;
    own.close();
    return is_open(again) ? 6 : 0;
  });
  EXPECT_TRUE(is_open(fds[0]));
  EXPECT_TRUE(is_open(fds[2]));
  sys::close(plain);
}

// In the middle of a change, too.
TEST(UnsharedDescriptor, ASignalHandlerMayFork) {
  test::interrupted_by_forks(
      [] { const UnsharedDescriptor one(new_socket()), other(new_socket()); }, [] { return 0; });
}

}  // namespace
}  // namespace uiw::core
