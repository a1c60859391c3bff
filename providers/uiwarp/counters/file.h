// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The slots that this process publishes.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string_view>

#include "counters/slot.h"

namespace uiw::counters {

// How the file is made when the first slot is taken: a descriptor of an empty one, open for reading
// and writing, that stays open; or -errno: then nothing is published. Called with a lock held, once
// in each process. Thread: any.
using Create = int (*)();
void set_creator(Create create);

// A slot of this process. Where there is no file, or no room in it, it is one that nobody reads.
class Lent {
 public:
  Lent(Kind kind, std::string_view device, uint32_t number);
  // What it counted stays in the sum of its device. In a fork's child: nothing, it is the parent's.
  ~Lent();
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  Slot* operator->() const { return slot_; }
  Slot& operator*() const { return *slot_; }
  uint32_t index() const { return index_; }

 private:
  Slot* slot_;
  unsigned generation_;
  uint32_t index_ = 0;  // in the file, from 1; 0: not there
};

void set_connected(Slot& slot, const sockaddr_storage& local, const sockaddr_storage& peer);

// The descriptor of this process's file; negative: there is none. Thread: any.
int own_file();

}  // namespace uiw::counters
