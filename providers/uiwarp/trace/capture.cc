// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/capture.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/be.h"
#include "mpa/markers.h"
#include "mpa/startup_frame.h"
#include "trace/packet.h"

namespace uiw::trace {
namespace {

constexpr char kComment[] =
    "Made by `uiwarp trace` of what `uiwarp run --trace FILE,fpdus` has recorded: DDP and RDMAP "
    "headers, Read Requests, atomics, immediate data, Terminates, MPA's flags and depths, and "
    "times are those of the connection. Zeros stand for payload of Sends, Writes and Read "
    "Responses and for private data, which are not recorded; CRCs are right for that. TCP's "
    "handshake, sequence numbers and window are made up.";

constexpr uint32_t kLengthOffset = 2;    // in what an Agreed has of a start-up frame
constexpr uint32_t kBlockOverhead = 32;  // of pcapng, for each packet

// A packet that is to be written.
enum class Step : uint8_t { kSyn, kSynAck, kAck, kRequest, kReply, kFpdu };
struct Packet {
  int64_t time;
  uint32_t connection;
  Step step;
  uint64_t fpdu;  // of Wire::fpdus
};

uint32_t startup_size(const uint8_t (&frame)[8]) {
  // A file may say anything, a frame may not.
  return mpa::kStartupHeaderSize +
         std::min<uint32_t>(core::load_be16(frame + kLengthOffset), mpa::kMaxPrivateData);
}

std::vector<uint8_t> startup_frame(mpa::FrameKind kind, const uint8_t (&frame)[8]) {
  std::vector<uint8_t> octets(mpa::kMaxStartupFrame);
  mpa::StartupFrame blank;
  blank.kind = kind;
  mpa::encode(octets.data(), blank);  // for its key
  const bool enhanced = (frame[0] & mpa::kEnhancedFlag) && frame[1] > 1;
  std::memcpy(octets.data() + mpa::kStartupKeySize, frame,
              enhanced ? sizeof frame : sizeof frame - mpa::kEnhancedBlockSize);
  octets.resize(startup_size(frame));
  core::store_be16(octets.data() + mpa::kStartupKeySize + kLengthOffset,
                   static_cast<uint16_t>(octets.size() - mpa::kStartupHeaderSize));
  return octets;
}

// Whether the peer of who sends wants markers.
bool has_markers(const Connection& connection, bool by_initiator) {
  const Agreed& agreed = connection.agreed;
  return ((by_initiator ? agreed.reply : agreed.request)[0] & mpa::kMarkersFlag) != 0;
}

uint32_t size_of(const Wire& wire, const WireFpdu& fpdu) {
  const uint32_t size = mpa::fpdu_size(fpdu.record->fpdu.ulpdu_size);
  if (!has_markers(wire.connections[fpdu.connection], fpdu.by_initiator)) return size;
  return mpa::marked_size(static_cast<uint32_t>(fpdu.position() % mpa::kMarkerInterval), size);
}

// The whole FPDU, in the place of what is in `out`.
void lay_down(const WireFpdu& fpdu, bool markers, std::vector<uint8_t>& out) {
  const uint32_t ulpdu = fpdu.record->fpdu.ulpdu_size;
  out.assign(mpa::kMaxMarkedFpdu, 0);
  uint8_t plain[mpa::kLengthSize + WireFpdu::kMaxHead];
  core::store_be16(plain, static_cast<uint16_t>(ulpdu));
  uint8_t head[WireFpdu::kMaxHead];
  const uint32_t known = fpdu.head(head);
  std::memcpy(plain + mpa::kLengthSize, head, known);
  const auto position = static_cast<uint32_t>(fpdu.position() % mpa::kMarkerInterval);
  static constexpr uint8_t kZeros[mpa::kMaxFpdu] = {};
  const uint32_t zeros = ulpdu - known + mpa::pad_size(ulpdu);
  uint32_t size = mpa::kLengthSize + known;
  if (markers) {
    mpa::MarkerWriter writer(out.data(), position);
    writer.put(plain, size);
    writer.put(kZeros, zeros);
    writer.before_crc();
    const uint32_t crc = core::crc32c(writer.written().data(), writer.written().size());
    writer.put(&crc, sizeof crc);  // little-endian host: be.h
    size = static_cast<uint32_t>(writer.written().size());
  } else {
    std::memcpy(out.data(), plain, size);
    size += zeros;
    const uint32_t crc = core::crc32c(out.data(), size);
    std::memcpy(out.data() + size, &crc, sizeof crc);
    size += mpa::kCrcSize;
  }
  out.resize(size);
}

class Writer {
 public:
  Writer(const Wire& wire, std::FILE* out)
      : wire_(wire), out_(out), next_(2 * wire.connections.size()) {}

  void begin(uint64_t left_out) {
    std::string comment = kComment;
    if (left_out > 0) comment += " The " + std::to_string(left_out) + " oldest FPDUs are left out.";
    block_.clear();
    put_section(block_, comment);
    put_interface(block_, "uiwarp");
    flush();
  }

  void write(const Packet& packet) {
    const Connection& connection = wire_.connections[packet.connection];
    switch (packet.step) {
      case Step::kSyn:
        return send(packet, true, kSyn, 0, {}, connection.ends);
      case Step::kSynAck:
        return send(packet, false, kSyn | kAck, 0, {});
      case Step::kAck:
        return send(packet, true, kAck, 1, {});
      case Step::kRequest:
        return send(packet, true, kPsh | kAck, 1,
                    startup_frame(mpa::FrameKind::kRequest, connection.agreed.request));
      case Step::kReply:
        return send(packet, false, kPsh | kAck, 1,
                    startup_frame(mpa::FrameKind::kReply, connection.agreed.reply));
      case Step::kFpdu:
        return write_fpdu(packet);
    }
  }

 private:
  void write_fpdu(const Packet& packet) {
    const Connection& connection = wire_.connections[packet.connection];
    const WireFpdu& fpdu = wire_.fpdus[packet.fpdu];
    const bool by_initiator = fpdu.by_initiator;
    lay_down(fpdu, has_markers(connection, by_initiator), fpdu_);
    auto sequence = static_cast<uint32_t>(
        1 + startup_size(by_initiator ? connection.agreed.request : connection.agreed.reply) +
        fpdu.position());
    // Only FPDUs of others than uiwarp may be longer than a packet; then they are two.
    for (core::Bytes left = fpdu_; !left.empty();) {
      const size_t size = std::min<size_t>(left.size(), most_payload(connection.addresses));
      send(packet, by_initiator, kPsh | kAck, sequence, left.first(size));
      sequence += static_cast<uint32_t>(size);
      left = left.subspan(size);
    }
  }

  void send(const Packet& packet, bool by_initiator, uint8_t flags, uint32_t sequence,
            core::Bytes payload, std::string_view comment = {}) {
    const Addresses& at = wire_.connections[packet.connection].addresses;
    const size_t other = 2 * size_t{packet.connection} + (by_initiator ? 1 : 0);
    const Segment segment{.addresses = by_initiator ? at : turned(at),
                          .sequence = sequence,
                          .acknowledged = flags & kAck ? next_[other] : 0,
                          .flags = flags,
                          .payload = payload};
    encode(segment, packet_);
    next_[other ^ 1] = sequence + static_cast<uint32_t>(payload.size()) + (flags & kSyn ? 1 : 0);
    block_.clear();
    put_packet(block_, packet.time, packet_, comment);
    flush();
  }

  void flush() { std::fwrite(block_.data(), 1, block_.size(), out_); }

  const Wire& wire_;
  std::FILE* const out_;
  std::vector<uint32_t> next_;  // of each connection: behind what the responder, the initiator sent
  std::vector<uint8_t> block_, packet_, fpdu_;
};

}  // namespace

uint64_t surplus_of(const Wire& wire, uint64_t most) {
  uint64_t size = 0, kept = 0;
  for (; kept < wire.fpdus.size(); ++kept) {
    const WireFpdu& fpdu = wire.fpdus[wire.fpdus.size() - 1 - kept];
    const Segment segment{.addresses = wire.connections[fpdu.connection].addresses, .payload = {}};
    size += kBlockOverhead + header_size(segment) + size_of(wire, fpdu);
    if (size > most) break;
  }
  return wire.fpdus.size() - kept;
}

bool write_capture(const Wire& wire, uint64_t left_out, std::FILE* out) {
  std::vector<Packet> packets;
  for (uint32_t i = 0; i < wire.connections.size(); ++i) {
    const Connection& connection = wire.connections[i];
    for (const Step step : {Step::kSyn, Step::kSynAck, Step::kAck, Step::kRequest})
      packets.push_back({connection.began, i, step, 0});
    packets.push_back({connection.replied, i, Step::kReply, 0});
  }
  for (uint64_t i = left_out; i < wire.fpdus.size(); ++i)
    packets.push_back({wire.fpdus[i].time, wire.fpdus[i].connection, Step::kFpdu, i});
  std::ranges::stable_sort(packets, {}, &Packet::time);
  Writer writer(wire, out);
  writer.begin(left_out);
  for (const Packet& packet : packets) {
    writer.write(packet);
    if (std::ferror(out)) return false;
  }
  return std::fflush(out) == 0 && !std::ferror(out);
}

}  // namespace uiw::trace
