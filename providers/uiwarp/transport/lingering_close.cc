// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/lingering_close.h"

#include <cerrno>
#include <new>
#include <utility>

namespace uiw::transport {

namespace {

class LingeringClose final : public StreamHandler,
                             public engine::Timer,
                             public engine::OrphanedSocket {
 public:
  LingeringClose(engine::Engine& engine, StreamPtr stream, Unsent rest)
      : engine_(engine), stream_(std::move(stream)), rest_(std::move(rest)) {}

  void begin(core::Nanoseconds at_most, engine::Standing whose) {
    engine_.adopt(*this, whose);
    engine_.arm(*this, at_most);
    peer_closed_ = stream_->has_ended();
    stream_->resume_receive();
    stream_->set_handler(this);
    on_writable();
  }

 private:
  bool sends() const { return rest_.begin < rest_.end; }

  void on_octets(core::Bytes) override {}
  // The peer may have closed only its own side: it still gets the rest.
  void on_end_of_stream() override {
    peer_closed_ = true;
    if (!sends()) end();
  }
  void on_error(int) override { end(); }
  void on_writable() override {
    while (sends()) {
      const iovec piece{rest_.bytes.get() + rest_.begin, rest_.end - rest_.begin};
      const long taken = stream_->send(&piece, 1);
      if (taken == -EAGAIN) return stream_->want_writable();
      if (taken < 0) return end();
      rest_.begin += static_cast<size_t>(taken);
    }
    stream_->shutdown_write();
    if (peer_closed_) end();
  }
  void expire() override { evict(); }
  void evict() override {
    if (sends()) stream_->set_abortive();
    end();
  }

  void end() {
    engine_.release(*this);
    delete this;
  }

  engine::Engine& engine_;
  StreamPtr stream_;
  Unsent rest_;
  bool peer_closed_ = false;
};

}  // namespace

void lingering_close(engine::Engine& engine, StreamPtr stream, core::Nanoseconds at_most,
                     engine::Standing whose, Unsent rest) {
  auto* closing = new (std::nothrow) LingeringClose(engine, std::move(stream), std::move(rest));
  if (closing) closing->begin(at_most, whose);
}

}  // namespace uiw::transport
