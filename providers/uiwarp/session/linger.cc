// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "session/linger.h"

#include <new>

namespace uiw::session {

namespace {

class Lingering final : public transport::StreamHandler,
                        public engine::Timer,
                        public engine::OrphanedSocket {
 public:
  Lingering(engine::Engine& engine, transport::StreamPtr stream)
      : engine_(engine), stream_(std::move(stream)) {}

  void begin(core::Nanoseconds at_most, engine::Standing whose) {
    engine_.adopt(*this, whose);
    engine_.arm(*this, at_most);
    stream_->shutdown_write();
    stream_->resume_receive();
    stream_->set_handler(this);
  }

 private:
  void on_octets(core::Bytes) override {}
  void on_end_of_stream() override { end(); }
  void on_error(int) override { end(); }
  void on_writable() override {}
  void expire() override { end(); }
  void evict() override { end(); }

  void end() {
    engine_.release(*this);
    delete this;
  }

  engine::Engine& engine_;
  transport::StreamPtr stream_;
};

}  // namespace

void linger(engine::Engine& engine, transport::StreamPtr stream, core::Nanoseconds at_most,
            engine::Standing whose) {
  auto* lingering = new (std::nothrow) Lingering(engine, std::move(stream));
  if (lingering) lingering->begin(at_most, whose);
}

}  // namespace uiw::session
