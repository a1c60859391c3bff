// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Reading the interfaces where the kernel does not get the question.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <vector>

#include "device/interface.h"
#include "support/in_child.h"
#include "support/refused_calls.h"

namespace uiw::device {
namespace {

// netlink_sendmsg() has ENOBUFS where it finds no memory; filters have others.
TEST(Unanswered, AQuestionThatCannotBeSentIsAnError) {
  for (const int error : {ENOBUFS, EPERM}) {
    SCOPED_TRACE(error);
    test::in_child([&] {
      if (!test::refuse_calls({SYS_sendmsg, SYS_sendto}, error)) return 1;
      std::vector<Interface> interfaces;
      if (read_interfaces(interfaces) == 0 || !interfaces.empty()) return 2;
      int why = 0;
      return InterfaceWatch::start(why) == nullptr && why != 0 ? 0 : 3;
    });
  }
}

}  // namespace
}  // namespace uiw::device
