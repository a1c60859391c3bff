// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One end of a connection without a socket: from work requests to octets and completions, and from
// octets to memory.
#include <benchmark/benchmark.h>

#include "support/machine.h"

namespace uiw::micro {
namespace {

using test::Buffer;
using test::Machine;
using test::SendWr;

constexpr uint32_t kEmss = 65483;  // loopback
constexpr int kDepth = 64;

// ibv_post_send, FPDUs, completion and ibv_poll_cq: arguments are octets of a message and messages
// per turn.
void post_send(benchmark::State& state, bool crc, uint32_t emss = kEmss) {
  Machine machine({.crc = crc, .emss = emss, .depth = kDepth});
  Buffer source(machine.memory, static_cast<size_t>(state.range(0)));
  SendWr write = SendWr(IBV_WR_RDMA_WRITE, {source.sge()}).to(0x1000, 0x11223344);
  ibv_send_wr& request = write.get();
  const int turn = static_cast<int>(state.range(1));
  ibv_wc completions[kDepth];
  for (auto _ : state) {
    machine.sends->begin();
    for (int i = 0; i < turn; i++) machine.sends->add(request, false);
    machine.sends->end(true);
    while (machine.tx().fill()) {
      size_t octets = 0;
      for (const iovec& piece : machine.tx().pieces()) octets += piece.iov_len;
      machine.tx().consume(octets);
    }
    machine.tx().retire();
    if (machine.send_cq->poll(kDepth, completions) != turn) {
      state.SkipWithError("completions are missing");
      break;
    }
  }
  state.SetItemsProcessed(state.iterations() * turn);
  state.SetBytesProcessed(state.iterations() * turn * state.range(0));
}
BENCHMARK_CAPTURE(post_send, crc, true)->Args({64, 1})->Args({64, kDepth})->Args({65536, 1});
BENCHMARK_CAPTURE(post_send, no_crc, false)->Args({64, 1})->Args({64, kDepth})->Args({65536, 1});

BENCHMARK_CAPTURE(post_send, crc_ethernet, true, 1448)->Args({65536, 1});

// Octets of RDMA Writes, placed: arguments are octets of a message and messages that come at once.
void receive_write(benchmark::State& state, bool crc) {
  const size_t size = static_cast<size_t>(state.range(0));
  const int count = static_cast<int>(state.range(1));
  Machine sender({.crc = crc, .emss = kEmss, .depth = kDepth}),
      receiver({.initiator = false, .crc = crc});
  Buffer source(sender.memory, test::pattern(size)), sink(receiver.memory, size);
  for (int i = 0; i < count; i++)
    sender.post(SendWr(IBV_WR_RDMA_WRITE, {source.sge()}).to(sink.start(), sink.stag()));
  const test::Octets stream = sender.transmit();
  for (auto _ : state) {
    if (receiver.feed(stream) != qp::RxStatus::kOk) {
      state.SkipWithError("not accepted");
      break;
    }
  }
  if (sink.content() != source.content()) state.SkipWithError("not placed");
  state.SetItemsProcessed(state.iterations() * count);
  state.SetBytesProcessed(state.iterations() * count * state.range(0));
}
BENCHMARK_CAPTURE(receive_write, crc, true)->Args({64, 1})->Args({64, kDepth})->Args({65536, 1});
BENCHMARK_CAPTURE(receive_write, no_crc, false)
    ->Args({64, 1})
    ->Args({64, kDepth})
    ->Args({65536, 1});

// Sends of 64 octets from ibv_post_recv and ibv_post_send to both completions, what one end's
// pieces hold given to the other: the argument is messages per turn.
void send_receive(benchmark::State& state, bool crc) {
  constexpr size_t kSize = 64;
  Machine sender({.crc = crc, .emss = kEmss, .depth = kDepth}),
      receiver({.initiator = false, .crc = crc, .emss = kEmss, .receives = kDepth});
  Buffer source(sender.memory, kSize), sink(receiver.memory, kSize);
  SendWr send(IBV_WR_SEND, {source.sge()});
  ibv_send_wr& request = send.get();
  const int turn = static_cast<int>(state.range(0));
  test::RecvWr receive({sink.sge()});
  std::vector<ibv_recv_wr> receives(static_cast<size_t>(turn), receive.get());
  for (size_t i = 1; i < receives.size(); i++) receives[i - 1].next = &receives[i];
  ibv_wc completions[kDepth];
  for (auto _ : state) {
    ibv_recv_wr* list = receives.data();
    receiver.receives->post(list);
    sender.sends->begin();
    for (int i = 0; i < turn; i++) sender.sends->add(request, false);
    sender.sends->end(true);
    while (sender.tx().fill()) {
      size_t octets = 0;
      for (const iovec& piece : sender.tx().pieces()) {
        receiver.feed({static_cast<const uint8_t*>(piece.iov_base), piece.iov_len});
        octets += piece.iov_len;
      }
      sender.tx().consume(octets);
    }
    sender.tx().retire();
    if (sender.send_cq->poll(kDepth, completions) != turn ||
        receiver.recv_cq->poll(kDepth, completions) != turn) {
      state.SkipWithError("completions are missing");
      break;
    }
  }
  state.SetItemsProcessed(state.iterations() * turn);
}
BENCHMARK_CAPTURE(send_receive, crc, true)->Arg(1)->Arg(kDepth);
BENCHMARK_CAPTURE(send_receive, no_crc, false)->Arg(1)->Arg(kDepth);

}  // namespace
}  // namespace uiw::micro
