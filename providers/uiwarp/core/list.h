// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A doubly linked list through the elements: joining and leaving allocate nothing and take O(1).
#pragma once

#include <cstddef>

namespace uiw::core {

template <class T>
struct ListLink {
  T* previous = nullptr;
  T* next = nullptr;
};

// The list never owns its elements. An element is in at most one list per link.
template <class T, ListLink<T> T::*kLink>
class List {
 public:
  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }
  T* first() const { return first_; }
  static T* next(const T& element) { return (element.*kLink).next; }

  void append(T& element) {
    (element.*kLink) = {last_, nullptr};
    (last_ == nullptr ? first_ : (last_->*kLink).next) = &element;
    last_ = &element;
    ++size_;
  }
  void remove(T& element) {
    ListLink<T>& link = element.*kLink;
    (link.previous == nullptr ? first_ : (link.previous->*kLink).next) = link.next;
    (link.next == nullptr ? last_ : (link.next->*kLink).previous) = link.previous;
    link = {};
    --size_;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
  size_t size_ = 0;
};

}  // namespace uiw::core
