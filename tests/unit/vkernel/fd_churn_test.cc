// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Descriptors of virtual devices that are opened, copied and closed for a long time, some of them
// behind our back: each number is what it should be, and every file ends with its last descriptor.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>
#include <set>

#include "core/descriptors.h"
#include "support/descriptor_limit.h"
#include "support/in_child.h"
#include "uiwarp/uiwarp-abi.h"
#include "vkernel/fd_table.h"

namespace uiw::vkernel {
namespace {

constexpr size_t kMostDescriptors = 300;  // at a time

struct Life {
  int written = 0, closed = 0;
  bool deleted = false;
};

class LivingFile final : public DeviceFile {
 public:
  LivingFile(Life& life, Kind kind) : life_(life), kind_(kind) {}
  ~LivingFile() override { life_.deleted = true; }
  Kind kind() const override { return kind_; }
  ssize_t write(int, const void*, size_t size, int&) override {
    ++life_.written;
    return static_cast<ssize_t>(size);
  }
  void closed() override { ++life_.closed; }

 private:
  Life& life_;
  const Kind kind_;
};

class Churn {
 public:
  explicit Churn(uint32_t seed) : random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      if (!table_.empty()) expect_as_it_is(any());
    }
    expect_the_same_in_a_child();
    while (!table_.empty() && !testing::Test::HasFailure()) close_hooked(any());
    EXPECT_TRUE(files_.empty());
    for (int fd = 0; fd < core::kDescriptors; ++fd)
      ASSERT_NE(core::descriptor_use(fd), core::DescriptorUse::kDevice) << fd;
  }

 private:
  struct File {
    Life life;
    DeviceFile::Kind kind;
    int descriptors = 0;
    int written = 0;
  };
  struct Descriptor {
    File* file;
    bool open = true;  // false: closed behind our back; whose the number is now we do not care
  };

  size_t below(size_t end) { return random_() % end; }
  int any() { return std::next(table_.begin(), static_cast<long>(below(table_.size())))->first; }
  // Low numbers mostly, as the kernel gives them, and such as only programs with many files have.
  int somewhere() {
    constexpr int kRoom = 400;
    return below(4) > 0 ? 3 : 3 + static_cast<int>(below(static_cast<size_t>(end_ - kRoom)));
  }

  void step() {
    const bool more = table_.size() < kMostDescriptors;
    switch (below(8)) {
      case 0:
      case 1:
        if (more) open_one();
        break;
      case 2:
      case 3:
        if (more && !table_.empty()) copy(any(), -1);
        break;
      case 4:
        if (!table_.empty()) copy(any(), any());
        break;
      case 5:
        if (!table_.empty()) close_behind_our_back(any());
        break;
      default:
        if (!table_.empty()) close_hooked(any());
    }
  }

  void open_one() {
    const bool ucma = below(2) == 0;
    int ends[2];
    int made = -1;
    if (ucma) {
      ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
      made = ends[0];
      close(ends[1]);
    } else {
      made = ::open("/dev/null", O_RDWR | O_APPEND | O_CLOEXEC);
    }
    const int fd = fcntl(made, F_DUPFD_CLOEXEC, somewhere());
    close(made);
    ASSERT_GE(fd, 0);
    File* const file = new File;
    file->kind = ucma ? DeviceFile::Kind::kUcma : DeviceFile::Kind::kUverbs;
    ASSERT_EQ(register_file(fd, new LivingFile(file->life, file->kind)), 0);
    files_.insert(file);
    leave(fd);
    enter(fd, *file);
  }

  // To a number of its own, or over another one of ours.
  void copy(int fd, int over) {
    if (!table_.at(fd).open || fd == over) return;
    const int to = over < 0 ? fcntl(fd, F_DUPFD_CLOEXEC, somewhere()) : dup3(fd, over, O_CLOEXEC);
    ASSERT_GE(to, 0);
    uiwarp_vk_dup(fd, to);
    File& file = *table_.at(fd).file;
    ++file.descriptors;  // should it be the same that goes
    leave(to);
    --file.descriptors;
    enter(to, file);
  }

  void close_hooked(int fd) {
    uiwarp_vk_closing(fd);
    if (table_.at(fd).open) close(fd);
    leave(fd);
  }

  // Whoever opens something may have the number then.
  void close_behind_our_back(int fd) {
    Descriptor& descriptor = table_.at(fd);
    if (!descriptor.open) return;
    descriptor.open = false;
    syscall(SYS_close, fd);
  }

  void expect_as_it_is(int fd) {
    const Descriptor& descriptor = table_.at(fd);
    File& file = *descriptor.file;
    char octet = 0;
    int handled = -1;
    if (descriptor.open) {
      ASSERT_EQ(static_cast<bool>(find_file(fd)), true);
      ASSERT_EQ(uiwarp_vk_write(fd, &octet, 1, &handled), 1);
      ASSERT_EQ(handled, 1);
      ASSERT_EQ(file.life.written, ++file.written);
      ASSERT_FALSE(file.life.deleted);
      return;
    }
    ASSERT_FALSE(find_file(fd));
    uiwarp_vk_write(fd, &octet, 1, &handled);  // found out
    ASSERT_EQ(handled, 0);
    ASSERT_EQ(core::descriptor_use(fd), core::DescriptorUse::kForeign);
    leave(fd);
  }

  void expect_the_same_in_a_child() {
    test::in_child([&] {
      for (const auto& [fd, descriptor] : table_) {
        char octet = 0;
        int handled = -1;
        if (!descriptor.open) continue;
        if (uiwarp_vk_write(fd, &octet, 1, &handled) != -1 || errno != ENODEV || handled != 1)
          return 1;
        if (descriptor.file->kind == DeviceFile::Kind::kUcma && read(fd, &octet, 1) != 0) return 2;
      }
      return 0;
    });
  }

  void enter(int fd, File& file) {
    ++file.descriptors;
    table_[fd] = {&file, true};
    ASSERT_EQ(core::descriptor_use(fd), core::DescriptorUse::kDevice);
  }
  // What the table should have done when this number became another one's.
  void leave(int fd) {
    const auto found = table_.find(fd);
    if (found == table_.end()) return;
    File* const file = found->second.file;
    table_.erase(found);
    const bool last = --file->descriptors == 0;
    ASSERT_EQ(file->life.closed, last ? 1 : 0);
    ASSERT_EQ(file->life.deleted, last);
    if (!last) return;
    files_.erase(file);
    delete file;
  }

  std::mt19937 random_;
  const test::DescriptorLimit limit_{
      std::min<rlim_t>(test::DescriptorLimit::most(), core::kDescriptors)};
  const int end_ = static_cast<int>(test::DescriptorLimit::allowed());
  std::map<int, Descriptor> table_;
  std::set<File*> files_;
};

class FdTableChurn : public testing::TestWithParam<uint32_t> {};

TEST_P(FdTableChurn, IsAsTheModelSays) {
  Churn(GetParam()).run(80'000);
}
INSTANTIATE_TEST_SUITE_P(BySeed, FdTableChurn, testing::Values(1, 2));

}  // namespace
}  // namespace uiw::vkernel
