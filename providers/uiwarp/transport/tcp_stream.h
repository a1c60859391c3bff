// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One connected TCP socket. The engine receives from it, the holder of the sender role sends on it.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <memory>

#include "core/bytes.h"
#include "core/clock.h"
#include "engine/engine.h"
#include "transport/silence.h"

namespace uiw::transport {

// All callbacks are on the engine thread. They may call any TcpStream function, and may close the
// stream.
class StreamHandler {
 public:
  virtual void on_octets(core::Bytes octets) = 0;
  // The peer sent FIN after everything that was delivered.
  virtual void on_end_of_stream() = 0;
  // The connection is gone (ECONNRESET, ETIMEDOUT, ...). No further call follows.
  virtual void on_error(int error) = 0;
  // The socket takes bytes again, after want_writable().
  virtual void on_writable() = 0;

 protected:
  ~StreamHandler() = default;
};

// sendmsg(MSG_DONTWAIT | MSG_NOSIGNAL). Returns how many bytes were taken, perhaps fewer than
// given, or -errno; -EAGAIN when the socket is full or still connecting. Thread: any.
long send_now(int fd, const iovec* pieces, size_t count);

class TcpStream {
 public:
  // Closes the stream at once, without waiting: cancels outstanding operations, closes the socket
  // and frees its descriptor; memory is freed when the operations have ended. No handler call comes
  // after. Thread: engine; the caller must ensure that no thread is in send() or will call it (it
  // holds the sender role). Unread input makes the kernel send RST; see shutdown_write() for the
  // orderly way.
  struct Closer {
    void operator()(TcpStream* stream) const;
  };

  // What made the socket. kOurs: a Listener or a Connector, which has set TCP_NODELAY and, for a
  // peer on this host, Reno before the handshake. kElsewhere: something else.
  enum class Origin { kElsewhere, kOurs };

  // Takes over a connected, non-blocking socket and sets its options: TCP_NODELAY, and for a peer
  // on this host Reno and buffers of a fixed size (transport/socket_options.h). Null when out of
  // memory: the descriptor then stays the caller's. Thread: any.
  static std::unique_ptr<TcpStream, Closer> adopt(engine::Engine& engine, int fd,
                                                  Origin origin = Origin::kElsewhere);

  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  // Moves the stream, without its handler, to another engine. The thread of the new engine calls
  // this while the old one waits for it (Engine::run_sync()). Bytes that the old engine receives
  // meanwhile are not lost: the stream now behaves as if it had no handler, and delivers them in a
  // later turn of the new engine. No want_writable() may be pending. False when out of memory: then
  // nothing has changed.
  bool move_to(engine::Engine& engine);
  engine::Engine& engine() const;

  // Thread: engine. Sets the handler, and starts receiving if it was not. The handler may be
  // exchanged at any time, even from inside one of its own callbacks. With null, receiving stops;
  // what arrives nevertheless is kept for the next handler, which gets it in a later turn of the
  // engine.
  void set_handler(StreamHandler* handler);
  // Thread: engine. Stops and restarts receiving; the TCP window then stops the peer. One receive
  // that is already in flight may still be delivered after pause_receive().
  void pause_receive();
  void resume_receive();
  // Thread: engine. Whether no receive is in flight and nothing is kept: if it is also paused, it
  // delivers nothing more.
  bool quiet() const;
  // Thread: engine. Whether the peer's FIN or an error was delivered: it will not be delivered
  // again.
  bool has_ended() const;
  // Thread: engine. Whether the socket has bytes that were not received yet.
  bool has_unread() const;
  // Receives directly while the stream is quiet; for the engine, or the thread that the engine lets
  // receive. Returns bytes, 0 at the peer's FIN, or -errno; -EAGAIN when there is nothing. 0 and
  // errors must be passed to end() on the engine, since a socket reports an error once. The second
  // one fills several pieces of memory.
  long receive_now(void* buffer, size_t size);
  long receive_now(const iovec* pieces, size_t count);
  void end(long result);
  // Thread: engine. Limits the bytes of each receive from now on; 0: no limit.
  void receive_at_most(uint32_t octets);
  // Thread: engine. Requests one call of on_writable().
  void want_writable();

  // send_now(). Thread: the holder of the sender role.
  long send(const iovec* pieces, size_t count);
  // FIN after everything sent so far. Thread: as send().
  void shutdown_write();
  // TCP's view of the peer, and the probing of an idle one: transport/silence.h. Thread: engine.
  Pulse pulse() const;
  void probe_idle(core::Nanoseconds within);
  // Takes the socket's error, which is not reported again afterwards: why the stream is over
  // (Pulse). EPIPE if there is none, as when the peer's FIN came first. Thread: engine.
  int take_error();
  // Next close sends RST. Thread: engine.
  void set_abortive();
  // Sends RST now: nothing can be sent or received any more. Thread: engine.
  void cut();

  // true: the kernel drops all that arrives for the socket before TCP sees it, acknowledgements
  // too, as if the cable were pulled; the peer's TCP notices that. false: no longer. Thread:
  // engine.
  void set_deaf(bool deaf);

  bool peer_is_local() const { return peer_is_local_; }  // both ends on this host
  core::Nanoseconds age() const { return core::now() - adopted_at_; }
  uint32_t emss() const;  // TCP_MAXSEG now; one system call
  const sockaddr_storage& local_address() const { return local_; }
  const sockaddr_storage& peer_address() const { return peer_; }

 private:
  struct Impl;
  TcpStream() = default;
  ~TcpStream() = default;
  Impl* impl_ = nullptr;  // outlives this object until its operations have ended
  bool peer_is_local_ = false;
  const core::Nanoseconds adopted_at_ = core::now();
  sockaddr_storage local_{}, peer_{};
};

using StreamPtr = std::unique_ptr<TcpStream, TcpStream::Closer>;

}  // namespace uiw::transport
