// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Requests of rdma(8) and libibverbs, and what is answered, byte for byte.
#include "vkernel/nldev.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rdma/rdma_netlink.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include "support/gid.h"

namespace uiw::vkernel::nldev {
namespace {

using netlink::Datagram;
using test::gid;

constexpr uint32_t kPortId = 0x01020304;

Snapshot two_devices(core::Face face = core::Face::kIwarp) {
  static const device::Device lo = {"uiw_lo", 1, 0x0123456789abcdef, 250};
  static const device::Device eth0 = {"uiw_eth0", 7, 0x0002c90300001234, 251};
  return {{{&lo, {"lo", 65536, true, false, {gid("::1")}}},
           {&eth0, {"eth0", 1500, false, false, {gid("::ffff:192.0.2.9")}}}},
          &device::face(face),
          Objects::kNone,
          {}};
}

// Bytes as written by hand: numbers below are for little-endian hosts.
Datagram bytes(std::initializer_list<std::string> parts) {
  Datagram out;
  for (const std::string& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}
template <size_t kSize>
std::string raw(const char (&literal)[kSize]) {
  return {literal, kSize - 1};
}

void put(Datagram& out, const void* data, size_t size) {
  const auto* from = static_cast<const uint8_t*>(data);
  out.insert(out.end(), from, from + size);
  out.resize(NLMSG_ALIGN(out.size()));
}

// An attribute of a request.
Datagram attribute(uint16_t type, const void* data, size_t size) {
  const nlattr header{static_cast<uint16_t>(sizeof header + size), type};
  Datagram out;
  put(out, &header, sizeof header);
  put(out, data, size);
  return out;
}
Datagram u32(uint16_t type, uint32_t value) {
  return attribute(type, &value, sizeof value);
}
Datagram text(uint16_t type, const std::string& value) {
  return attribute(type, value.c_str(), value.size() + 1);
}

Datagram request(int command, uint16_t flags, std::initializer_list<Datagram> attributes = {},
                 int client = RDMA_NL_NLDEV) {
  Datagram out(sizeof(nlmsghdr));
  for (const Datagram& a : attributes) out.insert(out.end(), a.begin(), a.end());
  const nlmsghdr header{static_cast<uint32_t>(out.size()),
                        static_cast<uint16_t>(RDMA_NL_GET_TYPE(client, command)),
                        static_cast<uint16_t>(NLM_F_REQUEST | flags), 0x11223344, 0};
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

std::vector<Datagram> ask(const Datagram& asked, const Snapshot& snapshot = two_devices(),
                          Privilege privilege = Privilege::kNone, Echo echo = Echo::kHeader) {
  return answer(asked, {kPortId, privilege, echo}, snapshot);
}

nlmsghdr header_of(const Datagram& datagram, size_t at = 0) {
  nlmsghdr header;
  std::memcpy(&header, datagram.data() + at, sizeof header);
  return header;
}

// The errno in the last message of what was answered, which has to be an error or the end of a
// list.
int status(const std::vector<Datagram>& answers) {
  if (answers.empty()) return -1;
  size_t at = 0;
  while (at + header_of(answers.back(), at).nlmsg_len < answers.back().size()) {
    at += NLMSG_ALIGN(header_of(answers.back(), at).nlmsg_len);
  }
  const uint16_t type = header_of(answers.back(), at).nlmsg_type;
  EXPECT_TRUE(type == NLMSG_ERROR || type == NLMSG_DONE) << type;
  int error;
  std::memcpy(&error, answers.back().data() + at + sizeof(nlmsghdr), sizeof error);
  return -error;
}

// What the messages of a datagram hold, as `rdma` would read them.
bool mentions(const std::vector<Datagram>& answers, const std::string& what) {
  for (const Datagram& datagram : answers) {
    if (std::string(datagram.begin(), datagram.end()).find(what) != std::string::npos) return true;
  }
  return false;
}

TEST(Nldev, OneDevice) {
  const auto asked = request(RDMA_NLDEV_CMD_GET, 0, {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 7)});
  ASSERT_EQ(asked, bytes({raw("\x18\0\0\0\x01\x14\x01\0\x44\x33\x22\x11\0\0\0\0"),  // header
                          raw("\x08\0\x01\0\x07\0\0\0")}));
  EXPECT_THAT(ask(asked), testing::ElementsAre(bytes({
                              raw("\x6c\0\0\0\x01\x14\0\0\x44\x33\x22\x11\x04\x03\x02\x01"),
                              raw("\x08\0\x01\0\x07\0\0\0"),        // index
                              raw("\x0d\0\x02\0uiw_eth0\0\0\0\0"),  // name
                              raw("\x08\0\x03\0\x01\0\0\0"),        // ports
                              raw("\x0a\0\x05\0"
                                  "0.1.0\0\0\0"),                             // firmware
                              raw("\x0c\0\x06\0\x34\x12\0\0\x03\xc9\x02\0"),  // node GUID
                              raw("\x0c\0\x07\0\x34\x12\0\0\x03\xc9\x02\0"),  // system image GUID
                              raw("\x05\0\x0e\0\x04\0\0\0"),                  // node type: RNIC
                              raw("\x05\0\x54\0\0\0\0\0"),                    // adaptive moderation
                              raw("\x07\0\x43\0iw\0\0"),                      // protocol
                          })));
}

TEST(Nldev, OnePort) {
  const auto asked =
      request(RDMA_NLDEV_CMD_PORT_GET, NLM_F_ACK,
              {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1), u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1)});
  EXPECT_THAT(ask(asked),
              testing::ElementsAre(
                  bytes({
                      raw("\x4c\0\0\0\x05\x14\0\0\x44\x33\x22\x11\x04\x03\x02\x01"),
                      raw("\x08\0\x01\0\x01\0\0\0"),  // index
                      raw("\x0b\0\x02\0uiw_lo\0\0"),  // name
                      raw("\x08\0\x03\0\x01\0\0\0"),  // port
                      raw("\x05\0\x0c\0\x04\0\0\0"),  // active
                      raw("\x05\0\x0d\0\x05\0\0\0"),  // link up
                      raw("\x08\0\x32\0\x01\0\0\0"),  // index of the interface
                      raw("\x07\0\x33\0lo\0\0"),      // its name
                  }),
                  bytes({
                      raw("\x24\0\0\0\x02\0\0\x01\x44\x33\x22\x11\x04\x03\x02\x01"),
                      raw("\0\0\0\0"),                                          // no error
                      raw("\x20\0\0\0\x05\x14\x05\0\x44\x33\x22\x11\0\0\0\0"),  // of this request
                  })));
}

TEST(Nldev, TheCharacterDevice) {
  const auto uverbs =
      request(RDMA_NLDEV_CMD_GET_CHARDEV, 0,
              {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 7), text(RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs")});
  EXPECT_THAT(ask(uverbs), testing::ElementsAre(bytes({
                               raw("\x38\0\0\0\x0f\x14\0\0\x44\x33\x22\x11\x04\x03\x02\x01"),
                               raw("\x0c\0\x48\0\xfb\0\0\0\0\0\0\0"),  // 0:251
                               raw("\x0c\0\x47\0\x01\0\0\0\0\0\0\0"),  // ABI 1
                               raw("\x0e\0\x46\0uverbs251\0\0\0"),
                           })));
}

TEST(Nldev, OtherCharacterDevicesAreNotSupported) {
  const auto index = u32(RDMA_NLDEV_ATTR_DEV_INDEX, 7);
  const auto port = u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  const auto kind = [](const char* name) { return text(RDMA_NLDEV_ATTR_CHARDEV_TYPE, name); };
  const auto tried = [](std::initializer_list<Datagram> attributes) {
    return status(ask(request(RDMA_NLDEV_CMD_GET_CHARDEV, 0, attributes)));
  };
  EXPECT_EQ(tried({index, kind("umad")}), EOPNOTSUPP);
  EXPECT_EQ(tried({index, port, kind("umad")}), EOPNOTSUPP);
  EXPECT_EQ(tried({index, kind("rdma_cm")}), EOPNOTSUPP);
  EXPECT_EQ(tried({kind("uverbs")}), EOPNOTSUPP);
  EXPECT_EQ(tried({kind("rdma_cm")}), EOPNOTSUPP);
  EXPECT_EQ(tried({kind("")}), EOPNOTSUPP);
  EXPECT_EQ(tried({index}), EINVAL);
  EXPECT_EQ(tried({port, kind("uverbs")}), EINVAL);
  EXPECT_EQ(tried({index, port, kind("uverbs")}), EINVAL);
  EXPECT_EQ(tried({u32(RDMA_NLDEV_ATTR_DEV_INDEX, 2), kind("uverbs")}), EINVAL);
  EXPECT_EQ(tried({index, attribute(RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs", 6)}), EINVAL);
}

TEST(Nldev, TheSystemSaysThatAForkIsSafe) {
  EXPECT_THAT(ask(request(RDMA_NLDEV_CMD_SYS_GET, 0)),
              testing::ElementsAre(bytes({
                  raw("\x20\0\0\0\x06\x14\0\0\x44\x33\x22\x11\x04\x03\x02\x01"),
                  raw("\x05\0\x42\0\0\0\0\0"),    // devices of one network namespace
                  raw("\x05\0\x5d\0\x01\0\0\0"),  // copy on fork
              })));
}

TEST(Nldev, AListEndsWithDone) {
  const auto answers = ask(request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP | NLM_F_ACK));
  ASSERT_EQ(answers.size(), 1u);
  size_t at = 0;
  for (const char* name : {"uiw_lo", "uiw_eth0"}) {
    const nlmsghdr header = header_of(answers[0], at);
    EXPECT_EQ(header.nlmsg_type, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET));
    EXPECT_EQ(header.nlmsg_flags, NLM_F_MULTI);
    EXPECT_STREQ(reinterpret_cast<const char*>(answers[0].data()) + at + 28, name);
    at += header.nlmsg_len;
  }
  EXPECT_EQ(
      Datagram(answers[0].begin() + static_cast<ptrdiff_t>(at), answers[0].end()),
      bytes({raw("\x14\0\0\0\x03\0\x02\0\x44\x33\x22\x11\x04\x03\x02\x01"), raw("\0\0\0\0")}));
}

TEST(Nldev, ALongListIsInDatagramsThatAnyReaderHasRoomFor) {
  std::vector<device::Device> many(100);
  Snapshot snapshot = two_devices();
  snapshot.devices.clear();
  for (uint32_t i = 0; i < many.size(); ++i) {
    many[i].name = "uiw_veth" + std::to_string(i);
    many[i].ifindex = i + 1;
    many[i].node_guid = i + 1u;
    many[i].uverbs_minor = 250 + i;
    snapshot.devices.push_back({&many[i], {"veth" + std::to_string(i), 1500, true, false, {}}});
  }
  const auto answers = ask(request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP), snapshot);
  EXPECT_GT(answers.size(), 3u);
  for (const Datagram& datagram : answers) EXPECT_LE(datagram.size(), 4096u);
  for (const auto& device : many) EXPECT_TRUE(mentions(answers, device.name + '\0')) << device.name;
  EXPECT_EQ(status(answers), 0);
}

TEST(Nldev, TheFaceIsShown) {
  const auto asked = request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
  const auto answers = ask(asked, two_devices(core::Face::kRoce));
  EXPECT_TRUE(mentions(answers, raw("\x09\0\x43\0roce\0")));
  EXPECT_TRUE(mentions(answers, raw("\x05\0\x0e\0\x01\0\0\0")));
}

TEST(Nldev, AProcessWithoutObjectsSaysSoAndAnotherNothing) {
  Snapshot snapshot = two_devices();
  const auto asked = request(RDMA_NLDEV_CMD_RES_GET, 0, {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1)});
  for (const char* name : {"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"}) {
    EXPECT_TRUE(mentions(ask(asked, snapshot), name + std::string(1, 0))) << name;
  }
  EXPECT_TRUE(mentions(ask(asked, snapshot), raw("\x0c\0\x12\0\0\0\0\0\0\0\0\0")));
  snapshot.objects = Objects::kUncounted;
  EXPECT_THAT(ask(asked, snapshot),
              testing::ElementsAre(bytes({
                  raw("\x28\0\0\0\x09\x14\0\0\x44\x33\x22\x11\x04\x03\x02\x01"),
                  raw("\x08\0\x01\0\x01\0\0\0"), raw("\x0b\0\x02\0uiw_lo\0\0"),
                  raw("\x04\0\x0f\0"),  // an empty summary
              })));
}

TEST(Nldev, ListsOfObjectsAreEmptyAndNoObjectIsFound) {
  const auto index = u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1);
  const std::pair<int, uint16_t> kinds[] = {
      {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_LQPN},
      {RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_ATTR_RES_CM_IDN},
      {RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQN},
      {RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MRN},
      {RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PDN},
      {RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTXN},
      {RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQN}};
  for (const auto& [command, number] : kinds) {
    const auto list = ask(request(command, NLM_F_DUMP, {index}));
    ASSERT_EQ(list.size(), 1u) << command;
    EXPECT_EQ(list[0].size(), 20u) << command;  // the end alone
    EXPECT_EQ(status(list), 0) << command;
    EXPECT_EQ(status(ask(request(command, NLM_F_DUMP))), EINVAL) << command;
    EXPECT_EQ(status(ask(request(command, 0, {index, u32(number, 3)}))), ENOENT) << command;
    EXPECT_EQ(status(ask(request(command, 0, {index}))), EINVAL) << command;
    EXPECT_EQ(status(ask(request(command, 0, {u32(number, 3)}))), EINVAL) << command;
    const auto port = u32(RDMA_NLDEV_ATTR_PORT_INDEX, 2);
    EXPECT_EQ(status(ask(request(command, NLM_F_DUMP, {index, port}))), EINVAL) << command;
  }
}

// Attributes of a counter in a list of them.
std::string counter(const std::string& name, const std::string& value) {
  std::string text = name + '\0';
  const auto attribute_size = static_cast<char>(text.size() + 4);
  text.resize(NLMSG_ALIGN(text.size()));
  const std::string inner = std::string{attribute_size, 0, 0x52, 0} + text + value;
  return std::string{static_cast<char>(inner.size() + 4), 0, 0x51, 0} + inner;
}

TEST(Nldev, APortSaysWhatTheProgramsHaveCounted) {
  Snapshot counted = two_devices();
  counted.counted.resize(2);
  counted.counted[0].device = "uiw_other";
  counted.counted[0].bytes_sent = 1;
  counted.counted[1].device = "uiw_lo";
  counted.counted[1].bytes_sent = 0x0102030405060708;
  counted.counted[1].rnr_waits = 3;
  const auto ask_port = [&](int command, uint32_t device) {
    return ask(
        request(command, 0,
                {u32(RDMA_NLDEV_ATTR_DEV_INDEX, device), u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1)}),
        counted);
  };
  const auto values = ask_port(RDMA_NLDEV_CMD_STAT_GET, 1);
  EXPECT_TRUE(mentions(values, counter("bytes_sent", raw("\x0c\0\x53\0\x08\7\6\5\4\3\2\1"))));
  EXPECT_TRUE(mentions(values, counter("rnr_waits", raw("\x0c\0\x53\0\3\0\0\0\0\0\0\0"))));
  // A file of /sys in a unit of its own.
  EXPECT_FALSE(mentions(values, "port_xmit_data"));
  EXPECT_TRUE(mentions(ask_port(RDMA_NLDEV_CMD_STAT_GET, 7),
                       counter("bytes_sent", raw("\x0c\0\x53\0\0\0\0\0\0\0\0\0"))));
  EXPECT_TRUE(mentions(ask_port(RDMA_NLDEV_CMD_STAT_GET_STATUS, 1),
                       counter("bytes_sent", raw("\x08\0\x5e\0\1\0\0\0"))));
}

TEST(Nldev, CountersAreReadForThoseWhoAskForThem) {
  EXPECT_TRUE(asks_for_counters(request(RDMA_NLDEV_CMD_STAT_GET, 0)));
  EXPECT_FALSE(asks_for_counters(request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP)));
}

TEST(Nldev, NoObjectHasCountersOfItsOwn) {
  const auto index = u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1);
  const auto port = u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  for (int command : {RDMA_NLDEV_CMD_STAT_GET, RDMA_NLDEV_CMD_STAT_GET_STATUS})
    EXPECT_EQ(status(ask(request(command, 0, {index}))), EINVAL);
  const auto of = [](uint32_t kind) { return u32(RDMA_NLDEV_ATTR_STAT_RES, kind); };
  const auto get = [](std::initializer_list<Datagram> attributes, uint16_t flags = 0) {
    return ask(request(RDMA_NLDEV_CMD_STAT_GET, flags, attributes));
  };
  EXPECT_EQ(status(get({index, of(RDMA_NLDEV_ATTR_RES_MR), u32(RDMA_NLDEV_ATTR_RES_MRN, 1)})),
            ENOENT);
  EXPECT_EQ(status(get({index, of(RDMA_NLDEV_ATTR_RES_CQ)})), EINVAL);
  EXPECT_EQ(status(get({index, of(RDMA_NLDEV_ATTR_RES_QP)}, NLM_F_DUMP)), 0);
  EXPECT_EQ(status(get({index}, NLM_F_DUMP)), EINVAL);
  EXPECT_TRUE(
      mentions(get({index, port, of(RDMA_NLDEV_ATTR_RES_QP), u32(RDMA_NLDEV_ATTR_STAT_MODE, 0)}),
               raw("\x08\0\x4a\0\0\0\0\0")));
}

TEST(Nldev, NothingCanBeChanged) {
  const auto index = u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1);
  for (int command : {RDMA_NLDEV_CMD_SET, RDMA_NLDEV_CMD_NEWLINK, RDMA_NLDEV_CMD_DELLINK,
                      RDMA_NLDEV_CMD_SYS_SET, RDMA_NLDEV_CMD_STAT_SET, RDMA_NLDEV_CMD_STAT_DEL,
                      static_cast<rdma_nldev_command>(26), static_cast<rdma_nldev_command>(27)}) {
    const auto asked = request(command, NLM_F_ACK, {index});
    EXPECT_EQ(status(ask(asked)), EPERM) << command;
    EXPECT_EQ(status(ask(asked, two_devices(), Privilege::kNetAdmin)), EOPNOTSUPP) << command;
  }
  const auto all = request(RDMA_NLDEV_CMD_RES_QP_GET_RAW, NLM_F_DUMP, {index});
  EXPECT_EQ(status(ask(all)), EPERM);
  EXPECT_EQ(status(ask(all, two_devices(), Privilege::kNetAdmin)), 0);
}

TEST(Nldev, UnknownCommandsAreInvalid) {
  for (int command = 0; command < 1024; ++command) {
    const bool known = (command >= 1 && command <= 7) || (command >= 9 && command <= 27);
    if (known) continue;
    EXPECT_EQ(status(ask(request(command, 0))), EINVAL) << command;
    EXPECT_EQ(status(ask(request(command, NLM_F_DUMP))), EINVAL) << command;
  }
  for (int client : {1, 2, 4, 6, 63}) {
    EXPECT_EQ(status(ask(request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, {}, client))), EINVAL) << client;
  }
  EXPECT_EQ(status(ask(request(RDMA_NLDEV_CMD_SYS_GET, NLM_F_DUMP))), EINVAL);
}

TEST(Nldev, AnErrorGivesTheRequestBackUnlessAskedNotTo) {
  const auto asked = request(RDMA_NLDEV_CMD_GET, 0, {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 99)});
  EXPECT_THAT(ask(asked), testing::ElementsAre(bytes({
                              raw("\x24\0\0\0\x02\0\0\x01\x44\x33\x22\x11\x04\x03\x02\x01"),
                              raw("\xea\xff\xff\xff"),
                              raw("\x18\0\0\0\x01\x14\x01\0\x44\x33\x22\x11\0\0\0\0"),
                          })));
  EXPECT_THAT(ask(asked, two_devices(), Privilege::kNone, Echo::kMessage),
              testing::ElementsAre(bytes({
                  raw("\x2c\0\0\0\x02\0\0\0\x44\x33\x22\x11\x04\x03\x02\x01"),
                  raw("\xea\xff\xff\xff"),
                  raw("\x18\0\0\0\x01\x14\x01\0\x44\x33\x22\x11\0\0\0\0"),
                  raw("\x08\0\x01\0\x63\0\0\0"),
              })));
}

TEST(Nldev, EachMessageOfADatagramIsAnswered) {
  Datagram asked = request(RDMA_NLDEV_CMD_SYS_GET, 0);
  const Datagram second = request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
  asked.insert(asked.end(), second.begin(), second.end());
  EXPECT_TRUE(asks_for_list(asked));
  EXPECT_FALSE(asks_for_list(request(RDMA_NLDEV_CMD_SYS_GET, 0)));
  const auto answers = ask(asked);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(header_of(answers[0]).nlmsg_type,
            RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET));
  EXPECT_TRUE(mentions({answers[1]}, "uiw_eth0"));
}

TEST(Nldev, WhatIsNoRequestIsOnlyAcknowledged) {
  auto asked = request(RDMA_NLDEV_CMD_GET, NLM_F_ACK);
  asked[6] &= static_cast<uint8_t>(~NLM_F_REQUEST);
  EXPECT_EQ(status(ask(asked)), 0);
  asked[6] = 0;
  EXPECT_TRUE(ask(asked).empty());
  auto control = request(0, NLM_F_ACK);
  control[4] = NLMSG_NOOP;
  control[5] = 0;
  EXPECT_EQ(status(ask(control)), 0);
}

// Requests lie in memory of exactly their size, so that a sanitizer sees a byte too many.
TEST(Nldev, NoTruncatedRequestIsAnswered) {
  const auto whole =
      request(RDMA_NLDEV_CMD_GET_CHARDEV, NLM_F_ACK,
              {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 7), text(RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs")});
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(ask(Datagram(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size))).empty())
        << size;
  }
  // A message that is said to end there: its attributes are cut short.
  for (uint32_t size = sizeof(nlmsghdr); size + 1 < whole.size(); ++size) {
    Datagram shorter(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    std::memcpy(shorter.data(), &size, sizeof size);
    EXPECT_EQ(status(ask(shorter)), EINVAL) << size;
  }
}

TEST(Nldev, RandomRequestsAreAnsweredByWholeMessages) {
  std::mt19937 random(4711);
  const auto number = [&](unsigned most) { return random() % (most + 1); };
  for (int i = 0; i < 200'000; ++i) {
    Datagram asked(sizeof(nlmsghdr) + number(64));
    for (uint8_t& byte : asked)
      byte = static_cast<uint8_t>(number(3) == 0 ? number(255) : number(8));
    nlmsghdr header = header_of(asked);
    if (number(7) != 0) {
      header.nlmsg_type = static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, number(30)));
      header.nlmsg_flags =
          static_cast<uint16_t>(NLM_F_REQUEST | number(1) * NLM_F_DUMP | number(1) * NLM_F_ACK);
      header.nlmsg_len = static_cast<uint32_t>(asked.size());
    }
    std::memcpy(asked.data(), &header, sizeof header);
    for (const Datagram& datagram :
         ask(asked, two_devices(), Privilege::kNetAdmin, Echo::kMessage)) {
      size_t at = 0;
      while (at < datagram.size()) {
        ASSERT_LE(at + sizeof(nlmsghdr), datagram.size());
        const uint32_t length = header_of(datagram, at).nlmsg_len;
        ASSERT_GE(length, sizeof(nlmsghdr));
        ASSERT_LE(at + length, datagram.size());
        at += NLMSG_ALIGN(length);
      }
      ASSERT_EQ(at, datagram.size());
    }
  }
}

}  // namespace
}  // namespace uiw::vkernel::nldev
