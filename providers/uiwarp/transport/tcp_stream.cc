// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/tcp_stream.h"

#include <limits.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/raw_sys.h"
#include "transport/close_connection.h"
#include "transport/socket_options.h"
#include "transport/wire_order.h"

namespace uiw::transport {

namespace sys = core::sys;

// Lives from adopt() until the stream is closed and nothing refers to it: no operation in flight,
// no task posted, no handler call on the stack. Thread: engine.
struct TcpStream::Impl final : engine::Task {
  class ReceiveOp final : public engine::Op {
   public:
    explicit ReceiveOp(Impl& impl) : impl_(impl) {}
    void complete(int result, core::Bytes data) override { impl_.received(result, data); }

   private:
    Impl& impl_;
  };
  class WritableOp final : public engine::Op {
   public:
    explicit WritableOp(Impl& impl) : impl_(impl) {}
    void complete(int, core::Bytes) override { impl_.writable(); }

   private:
    Impl& impl_;
  };

  Impl(engine::Engine& its_engine, int its_fd, WireOrder its_order)
      : engine(its_engine), fd(its_fd), order(its_order) {}

  void received(int result, core::Bytes data);
  void deliver(int result, core::Bytes data);
  void writable();
  void keep(int result, core::Bytes data);
  void continue_receiving();
  void run() override;
  void close();
  void free_descriptor();
  void settle();
  void take_over();

  // A cache line that senders read and the engine does not write with every message.
  alignas(64) engine::Engine& engine;
  int fd;  // -1: closed
  const WireOrder order;
  alignas(64) StreamHandler* handler = nullptr;
  ReceiveOp receive_op{*this};
  WritableOp writable_op{*this};
  uint32_t most = 0;  // limit of one receive in bytes; 0: none
  bool paused = false;
  bool ended = false;   // no more bytes will come
  bool failed = false;  // on_error() was called
  bool closed = false;
  CloseBy close_by = CloseBy::kFin;
  bool posted = false;   // run() is still to come
  unsigned calling = 0;  // handler calls on the stack

  // One result of a receive that completed while there was no handler.
  bool has_kept = false;
  int kept_result = 0;
  std::unique_ptr<uint8_t[]> kept_octets;

  // While the stream moves to another engine: `next` is its object there, and waits until this one
  // is done.
  Impl* next = nullptr;
  Impl* previous = nullptr;  // the object that this one follows, until take_over()
};

void TcpStream::Impl::received(int result, core::Bytes data) {
  order.after_receive();
  if (next) {
    if (result != -ECANCELED) keep(result, data);
    settle();
  } else if (closed) {
    settle();
  } else if (!handler) {
    keep(result, data);
  } else {
    deliver(result, data);
  }
}

void TcpStream::Impl::deliver(int result, core::Bytes data) {
  ended = ended || result <= 0;
  failed = failed || result < 0;
  ++calling;
  if (result > 0) {
    handler->on_octets(data);
  } else if (result == 0) {
    handler->on_end_of_stream();
  } else {
    handler->on_error(-result);
  }
  --calling;
  if (closed) {
    settle();
  } else {
    continue_receiving();
  }
}

void TcpStream::Impl::writable() {
  if (next || closed) {
    settle();
    return;
  }
  // The result of the poll does not matter, even an error: the next send() reports it.
  if (!handler || failed) return;
  ++calling;
  handler->on_writable();
  --calling;
  if (closed) settle();
}

void TcpStream::Impl::keep(int result, core::Bytes data) {
  if (result > 0) {
    kept_octets.reset(new (std::nothrow) uint8_t[data.size()]);
    if (kept_octets) {
      memcpy(kept_octets.get(), data.data(), data.size());
    } else {
      result = -ENOMEM;
    }
  }
  has_kept = true;
  kept_result = result;
}

void TcpStream::Impl::continue_receiving() {
  if (!handler || paused || ended || has_kept || previous || receive_op.in_flight()) return;
  engine.receive(receive_op, fd, most);
}

// Delivers what was kept to the new handler, or takes over from another engine.
void TcpStream::Impl::run() {
  posted = false;
  if (next) {
    engine.cancel(receive_op);
    engine.cancel(writable_op);
  }
  if (previous) take_over();
  if (next || closed) {
    settle();
    return;
  }
  if (!has_kept) {
    continue_receiving();
    return;
  }
  if (!handler) return;
  has_kept = false;
  std::unique_ptr<uint8_t[]> octets = std::move(kept_octets);
  const size_t size = kept_result > 0 ? static_cast<size_t>(kept_result) : 0;
  deliver(kept_result, {octets.get(), size});
}

void TcpStream::Impl::close() {
  closed = true;
  handler = nullptr;
  engine.cancel(receive_op);
  engine.cancel(writable_op);
  settle();
}

// Closes the descriptor before cancelled operations have ended, so that closing a stream frees a
// descriptor at once. First the kernel must have seen all operations: one that it starts later
// would work on the next file with this number.
void TcpStream::Impl::free_descriptor() {
  if (fd < 0 || previous) return;
  const bool in_flight = receive_op.in_flight() || writable_op.in_flight();
  if (!in_flight || engine.flush()) close_connection(std::exchange(fd, -1), close_by);
}

void TcpStream::Impl::settle() {
  if (calling > 0) return;
  if (closed && !next) free_descriptor();
  if (receive_op.in_flight() || writable_op.in_flight() || posted) return;
  engine.let_go(receive_op);
  if (next) {
    next->engine.post(*next);  // which frees this
    return;
  }
  delete this;
}

void TcpStream::Impl::take_over() {
  has_kept = previous->has_kept;
  kept_result = previous->kept_result;
  kept_octets = std::move(previous->kept_octets);
  delete std::exchange(previous, nullptr);
}

namespace {

// Connections of this process to peers on this host. A forked child also counts its parent's.
constinit std::atomic<unsigned> g_local_connections{0};

// Repeats `call` while it is interrupted by a signal; returns its result.
template <class Call>
long uninterrupted(Call call) {
  long result;
  do {
    result = call();
  } while (result == -EINTR);
  return result;
}

}  // namespace

long send_now(int fd, const iovec* pieces, size_t count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces);
  message.msg_iovlen = std::min<size_t>(count, IOV_MAX);
  return uninterrupted([&] { return sys::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL); });
}

void TcpStream::Closer::operator()(TcpStream* stream) const {
  if (stream->peer_is_local_) g_local_connections.fetch_sub(1, std::memory_order_relaxed);
  stream->impl_->close();
  delete stream;
}

StreamPtr TcpStream::adopt(engine::Engine& engine, int fd, Origin origin) {
  StreamPtr::pointer stream = new (std::nothrow) TcpStream;
  if (!stream) return nullptr;
  // Both fail if the connection was reset meanwhile; the first receive reports that.
  socklen_t size = sizeof stream->local_;
  sys::getsockname(fd, reinterpret_cast<sockaddr*>(&stream->local_), &size);
  size = sizeof stream->peer_;
  sys::getpeername(fd, reinterpret_cast<sockaddr*>(&stream->peer_), &size);
  const WireOrder order(stream->local_, stream->peer_);
  stream->impl_ = new (std::nothrow) Impl(engine, fd, order);
  if (!stream->impl_) {
    delete stream;
    return nullptr;
  }

  if (origin == Origin::kElsewhere) send_at_once(fd);
  stream->peer_is_local_ = is_local_peer(stream->peer_, stream->local_);
  if (!stream->peer_is_local_) return StreamPtr(stream);
  const unsigned connections = 1 + g_local_connections.fetch_add(1, std::memory_order_relaxed);
  if (origin == Origin::kElsewhere) {
    tune_for_local_peer(fd, connections);
  } else {
    size_buffers(fd, connections);
  }
  return StreamPtr(stream);
}

bool TcpStream::move_to(engine::Engine& engine) {
  Impl& previous = *impl_;
  auto* next = new (std::nothrow) Impl(engine, previous.fd, previous.order);
  if (!next) return false;
  next->previous = &previous;
  next->ended = previous.ended;
  next->close_by = previous.close_by;
  next->posted = true;
  previous.handler = nullptr;
  previous.next = impl_ = next;
  // The other engine's thread must cancel operations in flight.
  if (!std::exchange(previous.posted, true)) previous.engine.post(previous);
  return true;
}

engine::Engine& TcpStream::engine() const {
  return impl_->engine;
}

void TcpStream::set_handler(StreamHandler* handler) {
  Impl& impl = *impl_;
  impl.handler = handler;
  if (!handler) return;
  if (impl.has_kept) {
    if (!impl.posted) {
      impl.posted = true;
      impl.engine.post(impl);
    }
    return;
  }
  impl.continue_receiving();
}

void TcpStream::pause_receive() {
  impl_->paused = true;
}

void TcpStream::resume_receive() {
  impl_->paused = false;
  impl_->continue_receiving();
}

bool TcpStream::quiet() const {
  return !impl_->receive_op.in_flight() && !impl_->has_kept && !impl_->previous;
}

bool TcpStream::has_ended() const {
  return impl_->ended;
}

bool TcpStream::has_unread() const {
  int octets = 0;
  return sys::ioctl(impl_->fd, FIONREAD, &octets) == 0 && octets > 0;
}

long TcpStream::receive_now(void* buffer, size_t size) {
  const long got = uninterrupted([&] { return sys::recv(impl_->fd, buffer, size, MSG_DONTWAIT); });
  impl_->order.after_receive();
  return got;
}

long TcpStream::receive_now(const iovec* pieces, size_t count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces);
  message.msg_iovlen = count;
  const long got = uninterrupted([&] { return sys::recvmsg(impl_->fd, &message, MSG_DONTWAIT); });
  impl_->order.after_receive();
  return got;
}

void TcpStream::receive_at_most(uint32_t octets) {
  impl_->most = octets;
}

void TcpStream::end(long result) {
  impl_->paused = false;
  impl_->received(static_cast<int>(result), {});
}

void TcpStream::want_writable() {
  if (!impl_->writable_op.in_flight()) impl_->engine.poll_writable(impl_->writable_op, impl_->fd);
}

long TcpStream::send(const iovec* pieces, size_t count) {
  impl_->order.before_send();
  return send_now(impl_->fd, pieces, count);
}

void TcpStream::shutdown_write() {
  sys::shutdown(impl_->fd, SHUT_WR);
}

Pulse TcpStream::pulse() const {
  return pulse_of(impl_->fd);
}

void TcpStream::probe_idle(core::Nanoseconds within) {
  transport::probe_idle(impl_->fd, within);
}

int TcpStream::take_error() {
  int error = 0;
  socklen_t size = sizeof error;
  sys::getsockopt(impl_->fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error != 0 ? error : EPIPE;
}

void TcpStream::cut() {
  cut_connection(impl_->fd);
}

// The option matters if the process ends before it closes the stream.
void TcpStream::set_abortive() {
  impl_->close_by = CloseBy::kReset;
  const linger at_once{1, 0};
  sys::setsockopt(impl_->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void TcpStream::set_deaf(bool deaf) {
  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drop_all};
  const int ignored = 0;
  if (deaf)
    sys::setsockopt(impl_->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  else
    sys::setsockopt(impl_->fd, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored);
}

uint32_t TcpStream::emss() const {
  int size = 0;
  socklen_t length = sizeof size;
  sys::getsockopt(impl_->fd, IPPROTO_TCP, TCP_MAXSEG, &size, &length);
  return static_cast<uint32_t>(size);
}

}  // namespace uiw::transport
