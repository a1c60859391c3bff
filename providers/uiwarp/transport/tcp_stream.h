// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One connected TCP socket: bytes in by the engine, bytes out by whoever holds the sender role.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <memory>

#include "core/bytes.h"
#include "core/clock.h"
#include "engine/engine.h"
#include "transport/silence.h"

namespace uiw::transport {

// Thread: engine, all of them. May call any TcpStream function, close() included.
class StreamHandler {
 public:
  virtual void on_octets(core::Bytes octets) = 0;
  // The peer sent FIN after everything that was delivered.
  virtual void on_end_of_stream() = 0;
  // The connection is gone (ECONNRESET, ETIMEDOUT, ...). Nothing follows.
  virtual void on_error(int error) = 0;
  // The socket takes bytes again, after want_writable().
  virtual void on_writable() = 0;

 protected:
  ~StreamHandler() = default;
};

// sendmsg(MSG_DONTWAIT | MSG_NOSIGNAL): bytes taken (may be fewer), or -errno; -EAGAIN when the
// socket is full or still connecting. Thread: any.
long send_now(int fd, const iovec* pieces, size_t count);

class TcpStream {
 public:
  // Ends it at once without waiting: outstanding operations are cancelled, the socket is closed and
  // its descriptor free, memory is freed when they have ended. No handler call comes after.
  // Thread: engine; the caller makes sure that no thread is in send() or will call it (it holds the
  // sender role). Unread input makes the kernel send RST; see shutdown_write() for the orderly way.
  struct Closer {
    void operator()(TcpStream* stream) const;
  };

  // What made the socket: a Listener or a Connector, which has set TCP_NODELAY and, for a peer on
  // this host, reno before the handshake; or something else.
  enum class Origin { kElsewhere, kOurs };

  // Takes over a connected, non-blocking socket and sets its options: TCP_NODELAY, and for a peer
  // on this host reno and buffers of a fixed size (transport/socket_options.h). Null when out of
  // memory: the descriptor then stays the caller's. Thread: any.
  static std::unique_ptr<TcpStream, Closer> adopt(engine::Engine& engine, int fd,
                                                  Origin origin = Origin::kElsewhere);

  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  // Leaves its handler and goes to another engine, whose thread calls this while the one it comes
  // from waits for it (Engine::run_sync()). What that one receives meanwhile is not lost: from here
  // on the stream is like one without a handler, and delivers when its new engine has taken over,
  // in a later turn. No want_writable() may be pending. False when out of memory: then nothing has
  // changed.
  bool move_to(engine::Engine& engine);
  engine::Engine& engine() const;

  // Thread: engine. Sets the handler; starts receiving when it was not. The handler may be
  // exchanged at any time, also from inside one of its own calls. With null none is called and
  // receiving stops; what arrives nevertheless is kept for the next handler, which gets it in a
  // later turn of the engine.
  void set_handler(StreamHandler* handler);
  // Thread: engine. Stops asking the kernel for bytes (the TCP window then stops the peer) and
  // starts again. One receive that is already under way may still be delivered after pause().
  void pause_receive();
  void resume_receive();
  // Thread: engine. Whether no receive is in flight and nothing is kept: paused, it delivers
  // nothing more.
  bool quiet() const;
  // Thread: engine. Whether the peer's FIN or an error was delivered: no other handler is told.
  bool has_ended() const;
  // Thread: engine. Whether bytes have come that are still to be received.
  bool has_unread() const;
  // While it is quiet, for the engine or whoever it lets receive in its place: bytes, 0 at the
  // peer's FIN, or -errno; -EAGAIN when there is nothing. 0 and errors have to be handed to end()
  // on the engine, since a socket reports an error once. The second one fills several pieces of
  // memory.
  long receive_now(void* buffer, size_t size);
  long receive_now(const iovec* pieces, size_t count);
  void end(long result);
  // Thread: engine. From now on each receive brings so many bytes at most: 0 for no limit.
  void receive_at_most(uint32_t octets);
  // Thread: engine. on_writable() will be called once.
  void want_writable();

  // send_now(). Thread: the holder of the sender role.
  long send(const iovec* pieces, size_t count);
  // FIN after everything sent so far. Thread: as send().
  void shutdown_write();
  // What TCP knows of the peer, and how soon an idle one is probed: transport/silence.h. Thread:
  // engine.
  Pulse pulse() const;
  void probe_idle(core::Nanoseconds within);
  // Why it is over (Pulse), should nobody have been told yet: nobody is from now on. EPIPE where
  // the peer's FIN came first. Thread: engine.
  int take_error();
  // Next close sends RST. Thread: engine.
  void set_abortive();
  // RST now: it takes and brings nothing any more. Thread: engine.
  void cut();

  // Whatever comes for the socket the kernel drops before TCP sees it, acknowledgements too, or no
  // more: as if the cable were pulled, which the peer's TCP notices. Thread: engine.
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
