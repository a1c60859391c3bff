// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The frames of service id resolution, byte by byte.
#include "cm/resolution.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace uiw::cm {
namespace {

core::Bytes bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string encoded(const mpa::StartupFrame& frame) {
  std::string out(mpa::kMaxStartupFrame, '\0');
  out.resize(mpa::encode(reinterpret_cast<uint8_t*>(out.data()), frame));
  return out;
}

mpa::StartupFrame decoded(const std::string& octets, mpa::FrameKind kind) {
  mpa::StartupFrame frame;
  uint32_t consumed = 0;
  EXPECT_EQ(mpa::ParseStatus::kComplete, mpa::parse(bytes(octets), kind, frame, consumed));
  return frame;
}

std::string text(const std::optional<core::Bytes>& data) {
  return data ? std::string(data->begin(), data->end()) : "nothing";
}

const std::string kRequest = std::string("MPA ID Req Frame") +
                             std::string("\0\1\0\x0a", 4) +  // no flag, revision 1
                             std::string("UIWS\1\1\0\0", 8) + "hi";
const std::string kAnswer = std::string("MPA ID Rep Frame") +
                            std::string("\x20\1\0\x13", 4) +  // it rejects
                            std::string("UIWS\1\2\0\0\0\x12\x34\x56\1\x23\x45\x67", 16) + "yes";

TEST(Resolution, RequestOnTheWire) {
  EXPECT_EQ(kRequest, encoded(make_resolution_request(bytes("hi"))));
  EXPECT_EQ("hi", text(parse_resolution_request(decoded(kRequest, mpa::FrameKind::kRequest))));
  EXPECT_EQ("", text(parse_resolution_request(make_resolution_request({}))));
}

TEST(Resolution, AnswerOnTheWire) {
  const ResolutionAnswer sent{ResolutionStatus::kSuccess, 0x123456, 0x01234567};
  EXPECT_EQ(kAnswer, encoded(make_resolution_answer(sent, bytes("yes"))));
  ResolutionAnswer got{.status = ResolutionStatus::kRejected};
  EXPECT_EQ("yes", text(parse_resolution_answer(decoded(kAnswer, mpa::FrameKind::kReply), got)));
  EXPECT_EQ(ResolutionStatus::kSuccess, got.status);
  EXPECT_EQ(0x123456u, got.qp_num);
  EXPECT_EQ(0x01234567u, got.qkey);
}

TEST(Resolution, EveryStatusComesAsItWasSent) {
  for (auto status :
       {ResolutionStatus::kSuccess, ResolutionStatus::kNotSupported, ResolutionStatus::kRejected}) {
    ResolutionAnswer got;
    EXPECT_TRUE(parse_resolution_answer(make_resolution_answer({status}, {}), got));
    EXPECT_EQ(status, got.status);
  }
}

TEST(Resolution, WhatIsCutShortIsNone) {
  for (uint16_t size = 0; size < 8; ++size) {
    mpa::StartupFrame frame = make_resolution_request({});
    frame.private_size = size;
    EXPECT_EQ("nothing", text(parse_resolution_request(frame))) << size;
  }
  for (uint16_t size = 0; size < 16; ++size) {
    mpa::StartupFrame frame = make_resolution_answer({}, {});
    frame.private_size = size;
    ResolutionAnswer answer;
    EXPECT_EQ("nothing", text(parse_resolution_answer(frame, answer))) << size;
  }
}

TEST(Resolution, WhatHasMorePrivateDataThanThereIsRoomForIsNone) {
  ResolutionAnswer answer;
  EXPECT_TRUE(parse_resolution_request(make_resolution_request(bytes(std::string(180, 'x')))));
  EXPECT_FALSE(parse_resolution_request(make_resolution_request(bytes(std::string(181, 'x')))));
  EXPECT_TRUE(
      parse_resolution_answer(make_resolution_answer({}, bytes(std::string(136, 'x'))), answer));
  EXPECT_FALSE(
      parse_resolution_answer(make_resolution_answer({}, bytes(std::string(137, 'x'))), answer));
}

TEST(Resolution, AnotherSignatureVersionOrTypeIsNone) {
  for (size_t i = 0; i < 6; ++i) {
    mpa::StartupFrame request = make_resolution_request({}), reply = make_resolution_answer({}, {});
    request.private_data[i] ^= 0x40;
    reply.private_data[i] ^= 0x40;
    ResolutionAnswer answer;
    EXPECT_FALSE(parse_resolution_request(request)) << i;
    EXPECT_FALSE(parse_resolution_answer(reply, answer)) << i;
  }
  ResolutionAnswer answer;
  EXPECT_FALSE(parse_resolution_answer(make_resolution_request(bytes("12345678")), answer));
  EXPECT_FALSE(parse_resolution_request(make_resolution_answer({}, {})));
}

TEST(Resolution, AnAnswerThatAcceptsAConnectionOrHasAnUnknownStatusIsNone) {
  mpa::StartupFrame frame = make_resolution_answer({}, {});
  ResolutionAnswer answer{.status = ResolutionStatus::kNotSupported, .qp_num = 7};
  frame.private_data[6] = 3;
  EXPECT_FALSE(parse_resolution_answer(frame, answer));
  frame.private_data[6] = 0;
  frame.reject = false;
  EXPECT_FALSE(parse_resolution_answer(frame, answer));
  EXPECT_EQ(ResolutionStatus::kNotSupported, answer.status);
  EXPECT_EQ(7u, answer.qp_num);
}

}  // namespace
}  // namespace uiw::cm
