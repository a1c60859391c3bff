// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/resolution.h"

#include <algorithm>
#include <cstring>

#include "core/be.h"

namespace uiw::cm {
namespace {

enum Type : uint8_t { kRequest = 1, kAnswer = 2 };

constexpr uint8_t kSignature[] = {'U', 'I', 'W', 'S', 1};
constexpr uint32_t kTypeOffset = sizeof kSignature, kStatusOffset = kTypeOffset + 1;
constexpr uint32_t kQpNumOffset = 8, kQkeyOffset = 12;
constexpr uint32_t kRequestSize = 8, kAnswerSize = 16;

// The frame has no enhanced block, as depths and an RTR frame are not needed.
mpa::StartupFrame make(mpa::FrameKind kind, Type type, uint32_t size, core::Bytes private_data) {
  mpa::StartupFrame frame;
  frame.kind = kind;
  frame.revision = 1;
  std::copy_n(kSignature, sizeof kSignature, frame.private_data);
  frame.private_data[kTypeOffset] = type;
  std::copy(private_data.begin(), private_data.end(), frame.private_data + size);
  frame.private_size = static_cast<uint16_t>(size + private_data.size());
  return frame;
}

std::optional<core::Bytes> parse(const mpa::StartupFrame& frame, Type type, uint32_t size,
                                 uint32_t room) {
  const uint8_t* const data = frame.private_data;
  if (frame.private_size < size || frame.private_size > size + room || data[kTypeOffset] != type ||
      std::memcmp(data, kSignature, sizeof kSignature) != 0)
    return {};
  return core::Bytes(data + size, frame.private_size - size);
}

}  // namespace

mpa::StartupFrame make_resolution_request(core::Bytes private_data) {
  return make(mpa::FrameKind::kRequest, kRequest, kRequestSize, private_data);
}

mpa::StartupFrame make_resolution_answer(const ResolutionAnswer& answer, core::Bytes private_data) {
  mpa::StartupFrame frame = make(mpa::FrameKind::kReply, kAnswer, kAnswerSize, private_data);
  frame.reject = true;
  frame.private_data[kStatusOffset] = static_cast<uint8_t>(answer.status);
  core::store_be32(frame.private_data + kQpNumOffset, answer.qp_num);
  core::store_be32(frame.private_data + kQkeyOffset, answer.qkey);
  return frame;
}

std::optional<core::Bytes> parse_resolution_request(const mpa::StartupFrame& frame) {
  return parse(frame, kRequest, kRequestSize, kRequestRoom);
}

std::optional<core::Bytes> parse_resolution_answer(const mpa::StartupFrame& frame,
                                                   ResolutionAnswer& answer) {
  const auto private_data = parse(frame, kAnswer, kAnswerSize, kAnswerRoom);
  if (!private_data || !frame.reject) return {};
  const uint8_t status = frame.private_data[kStatusOffset];
  if (status > static_cast<uint8_t>(ResolutionStatus::kRejected)) return {};
  answer.status = static_cast<ResolutionStatus>(status);
  answer.qp_num = core::load_be32(frame.private_data + kQpNumOffset);
  answer.qkey = core::load_be32(frame.private_data + kQkeyOffset);
  return private_data;
}

}  // namespace uiw::cm
