// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A stream in FPDUs (RFC 5044 4), with nothing of RDMA but that: what the format on the wire costs
// whoever speaks it, in the cheapest way we know.
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "connection.h"
#include "core/be.h"
#include "core/clock.h"
#include "core/crc32c.h"
#include "mpa/framing.h"
#include "server_process.h"
#include "shapes.h"

namespace uiw::bench {
namespace {

constexpr size_t kHeader = 16;  // of a tagged segment, RFC 5041 4.2
constexpr size_t kFront = mpa::kLengthSize + kHeader;
constexpr size_t kTail = 3 + mpa::kCrcSize;  // at most: padding and CRC
constexpr size_t kFlat = 4096;               // smaller payloads are copied behind their headers
constexpr size_t kParts = 1024;              // IOV_MAX
constexpr size_t kAtOnce = 1 << 20;          // octets in one call

size_t tail_of(size_t payload) {
  return mpa::pad_size(static_cast<uint32_t>(kHeader + payload)) + mpa::kCrcSize;
}

class Sender {
 public:
  Sender(int fd, const Load& load) : fd_(fd), load_(load), own_(2 * kAtOnce) {}

  void message(const uint8_t* payload) {
    for (size_t at = 0; at < load_.size; at += load_.fpdu)
      fpdu(payload + at, std::min(load_.fpdu, load_.size - at));
  }
  void flush() {
    iovec* at = parts_;
    while (count_ > 0) {
      msghdr call = {};
      call.msg_iov = at;
      call.msg_iovlen = count_;
      ssize_t sent = sendmsg(fd_, &call, MSG_NOSIGNAL);
      if (sent < 0 && errno != EINTR) die("send");
      for (; count_ > 0 && sent >= static_cast<ssize_t>(at->iov_len); ++at, --count_)
        sent -= static_cast<ssize_t>(at->iov_len);
      if (count_ > 0 && sent > 0) {
        at->iov_base = static_cast<char*>(at->iov_base) + sent;
        at->iov_len -= static_cast<size_t>(sent);
      }
    }
    used_ = octets_ = 0;
  }

 private:
  void fpdu(const uint8_t* payload, size_t size) {
    const size_t tail_size = tail_of(size), whole = kFront + size + tail_size;
    if (count_ + 3 > kParts || octets_ + whole > kAtOnce) flush();
    octets_ += whole;
    uint8_t* const front = own_.data() + used_;
    core::store_be16(front, static_cast<uint16_t>(kHeader + size));
    uint32_t crc = core::crc32c_begin();
    if (load_.crc)
      crc = core::crc32c_update(core::crc32c_update(crc, front, kFront), payload, size);
    uint8_t* tail = front + kFront;
    if (size < kFlat) {
      std::memcpy(tail, payload, size);
      tail += size;
    }
    const size_t pad = tail_size - mpa::kCrcSize;
    std::memset(tail, 0, pad);
    if (load_.crc) crc = core::crc32c_end(core::crc32c_update(crc, tail, pad));
    std::memcpy(tail + pad, &crc, sizeof crc);
    used_ = static_cast<size_t>(tail - own_.data()) + tail_size;
    if (size < kFlat) {
      add(front, whole);
    } else {
      add(front, kFront);
      add(const_cast<uint8_t*>(payload), size);
      add(tail, tail_size);
    }
  }
  void add(uint8_t* data, size_t size) {
    iovec* const last = count_ > 0 ? &parts_[count_ - 1] : nullptr;
    if (last && static_cast<uint8_t*>(last->iov_base) + last->iov_len == data) {
      last->iov_len += size;
    } else {
      parts_[count_++] = {data, size};
    }
  }

  const int fd_;
  const Load& load_;
  std::vector<uint8_t> own_;  // headers, tails and what is flat
  iovec parts_[kParts];
  size_t count_ = 0, used_ = 0, octets_ = 0;
};

size_t receive_some(int fd, iovec* parts, size_t count, bool spin) {
  msghdr call = {};
  call.msg_iov = parts;
  call.msg_iovlen = count;
  for (;;) {
    const ssize_t got = recvmsg(fd, &call, spin ? MSG_DONTWAIT : 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) die("peer ended early");
    if (errno != EAGAIN && errno != EINTR) die("recv");
  }
}

// With a CRC nothing reaches its place before all of its FPDU has been verified (RFC 5044 6).
void receive_verified(int fd, const Load& load, uint8_t* place) {
  std::vector<uint8_t> buffer(256 << 10);
  const bool spin = load.wait == Wait::kSpin;
  size_t begin = 0, end = 0, placed = 0;
  for (uint64_t left = uint64_t{load.size} * static_cast<uint64_t>(load.iterations); left > 0;) {
    const mpa::Extent next = mpa::extent({buffer.data() + begin, end - begin});
    if (!next.whole || end - begin < next.size) {
      if (begin > 0) std::memmove(buffer.data(), buffer.data() + begin, end - begin);
      end -= std::exchange(begin, 0);
      iovec room = {buffer.data() + end, buffer.size() - end};
      end += receive_some(fd, &room, 1, spin);
      continue;
    }
    const uint8_t* const fpdu = buffer.data() + begin;
    const size_t size = core::load_be16(fpdu) - kHeader;
    const size_t covered = next.size - mpa::kCrcSize;
    uint32_t said;
    std::memcpy(&said, fpdu + covered, sizeof said);
    if (core::crc32c(fpdu, covered) != said) die("a CRC is wrong");
    std::memcpy(place + placed, fpdu + kFront, size);
    placed = (placed + size) % load.size;
    left -= size;
    begin += next.size;
  }
}

// Without, payload goes where it belongs at once, several FPDUs in a call: this receiver knows the
// sizes of what comes, and finds them confirmed.
class Places {
 public:
  Places(const Load& load, uint8_t* place)
      : load_(load),
        place_(place),
        left_(uint64_t{load.size} * static_cast<uint64_t>(load.iterations)) {
    expect_header();
    refill();
  }
  bool empty() const { return pieces_.empty(); }
  iovec* pieces() { return pieces_.data(); }
  size_t count() const { return pieces_.size(); }
  void received(size_t octets) {
    size_t done = 0;
    for (; done < pieces_.size() && octets >= pieces_[done].iov_len; ++done) {
      octets -= pieces_[done].iov_len;
      if (++passed_ % 2 != 0) confirm();
    }
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<ptrdiff_t>(done));
    if (octets > 0) {
      pieces_[0].iov_base = static_cast<uint8_t*>(pieces_[0].iov_base) + octets;
      pieces_[0].iov_len -= octets;
    }
    refill();
  }

 private:
  static constexpr size_t kFpdus = 8;  // in one call
  struct Between {                     // the end of one FPDU and the beginning of the next
    uint8_t octets[kTail + kFront];
    size_t size = 0, header = 0, expected = 0;
  };

  // Pieces take turns: what is between FPDUs, the payload of one.
  void refill() {
    while (pieces_.size() + 2 <= 2 * kFpdus && next_ > 0) {
      pieces_.push_back({place_ + placed_, next_});
      placed_ = (placed_ + next_) % load_.size;
      left_ -= next_;
      expect_header();
    }
  }
  void expect_header() {
    const size_t tail = next_ > 0 ? tail_of(next_) : 0;
    next_ = std::min({load_.fpdu, load_.size - placed_, static_cast<size_t>(left_)});
    Between& between = between_[headers_++ % std::size(between_)];
    between.header = tail;
    between.size = tail + (next_ > 0 ? kFront : 0);
    between.expected = next_;
    pieces_.push_back({between.octets, between.size});
  }
  void confirm() {
    const Between& between = between_[confirmed_++ % std::size(between_)];
    if (between.expected > 0 &&
        core::load_be16(between.octets + between.header) != kHeader + between.expected)
      die("an FPDU has another size");
  }

  const Load& load_;
  uint8_t* const place_;
  uint64_t left_;  // octets of payload that have no piece yet
  size_t placed_ = 0, next_ = 0;
  std::vector<iovec> pieces_;
  Between between_[kFpdus + 2];
  size_t headers_ = 0, confirmed_ = 0, passed_ = 0;
};

void receive_in_place(int fd, const Load& load, uint8_t* place) {
  const bool spin = load.wait == Wait::kSpin;
  Places places(load, place);
  while (!places.empty()) places.received(receive_some(fd, places.pieces(), places.count(), spin));
}

std::vector<uint8_t> content(size_t size) {
  std::vector<uint8_t> octets(size);
  for (size_t i = 0; i < size; ++i) octets[i] = static_cast<uint8_t>(i % 251);
  return octets;
}

}  // namespace

void fpdus_serve(int listener, const Load& load) {
  const int fd = accept_one(listener);
  std::vector<uint8_t> place(load.size);
  if (load.crc) {
    receive_verified(fd, load, place.data());
  } else {
    receive_in_place(fd, load, place.data());
  }
  acknowledge(fd);
  if (place != content(load.size)) die("payload is in the wrong place");
}

double fpdus_measure(const sockaddr_in& server, const Load& load) {
  const int fd = connect_to(server);
  const std::vector<uint8_t> payload = content(load.size);
  Sender sender(fd, load);
  const int64_t start = core::now();
  for (int sent = 0; sent < load.iterations; ++sent) {
    sender.message(payload.data());
    if ((sent + 1) % load.batch == 0) sender.flush();
  }
  sender.flush();
  await_acknowledgement(fd);
  const int64_t ns = core::now() - start;
  close(fd);
  return mib_per_second(load, ns);
}

}  // namespace uiw::bench
