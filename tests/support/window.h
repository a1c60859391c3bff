// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A memory window of a test, allocated for as long as the object lives.
#pragma once

#include "support/scene.h"

namespace uiw::test {

inline constexpr uint32_t kBindable = mem::kLocalWrite | mem::kMwBind;

class Window {
 public:
  explicit Window(mem::Table& table, ibv_mw_type type = IBV_MW_TYPE_2, uint32_t pd = kPd)
      : table_(&table) {
    mw_.type = type;
    mw_.rkey = *table.add_window(pd, static_cast<mem::WindowType>(type), kMaxRegions);
  }
  ~Window() { table_->remove_window(mw_.rkey); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // A request that binds the window, under its next key, to `length` octets of `buffer`.
  SendWr bind(const Buffer& buffer, size_t offset, size_t length, unsigned access,
              uint64_t id = 0) {
    mr_.lkey = buffer.stag();
    return bind(&mr_, buffer.start() + offset, length, access, id);
  }
  SendWr unbind(uint64_t id = 0) { return bind(nullptr, 0, 0, 0, id); }  // type 1
  SendWr bind(ibv_mr* mr, uint64_t start, uint64_t length, unsigned access, uint64_t id) {
    SendWr wr(IBV_WR_BIND_MW, {}, id);
    wr.wr.bind_mw = {&mw_, ibv_inc_rkey(mw_.rkey), {mr, start, length, access}};
    mw_.rkey = wr.wr.bind_mw.rkey;
    return wr;
  }
  // As `id` of a queue pair, at once.
  void bind_now(uint32_t qp_num, const Buffer& buffer, size_t offset, size_t length,
                unsigned access) {
    const uint32_t before = mw_.rkey;
    mw_.rkey = ibv_inc_rkey(before);
    ASSERT_EQ(table_->bind({kPd, qp_num}, {before, mw_.rkey, buffer.stag(), access,
                                           buffer.start() + offset, length}),
              0);
  }
  uint32_t stag() const { return mw_.rkey; }
  bool bound() const { return bool(table_->find(mw_.rkey)); }
  ibv_mw& mw() { return mw_; }

 private:
  mem::Table* table_;
  ibv_mw mw_{};
  ibv_mr mr_{};
};

inline SendWr invalidating(ibv_wr_opcode opcode, uint32_t stag, std::vector<ibv_sge> list = {},
                           uint64_t id = 0) {
  SendWr wr(opcode, std::move(list), id);
  wr.wr.invalidate_rkey = stag;
  return wr;
}

}  // namespace uiw::test
