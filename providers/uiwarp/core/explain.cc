// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/explain.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "core/generation.h"
#include "core/log.h"
#include "core/settings.h"
#include "core/tuning.h"

namespace uiw::core {
namespace {

// For how many objects a sentence was logged in this process.
struct Count {
  std::atomic<const char*> sentence{nullptr};
  std::atomic<uint32_t> objects{0};
};
constexpr size_t kMostSentences = 256;  // more than exist
Count counts[kMostSentences];

// The sentence's place among `count` places; adds it if it is missing. Null: all places have other
// sentences.
template <class Place, class Sentence>
Place* find(Place* places, size_t count, const char* sentence, Sentence&& of, bool& added) {
  for (size_t i = 0; i < count; ++i) {
    const char* there = of(places[i]).load(std::memory_order_relaxed);
    added = !there && of(places[i]).compare_exchange_strong(there, sentence);
    if (added || there == sentence) return &places[i];
  }
  return nullptr;
}

}  // namespace

void explain_with(Told& told, const char* sentence, va_list arguments) {
  if (log_enabled(LogLevel::kWarn) && told.first(sentence))
    log_with(LogLevel::kWarn, sentence, arguments);
}

bool Told::first(const char* sentence) {
  bool added;
  const auto of_object = [](std::atomic<const char*> & place) -> auto& {
    return place;
  };
  if (!find(sentences_, kMost, sentence, of_object, added) || !added) return false;
  const auto of_count = [](Count & place) -> auto& {
    return place.sentence;
  };
  Count* const count = find(counts, kMostSentences, sentence, of_count, added);
  return count && count->objects.fetch_add(1, std::memory_order_relaxed) < tuning::kMostExplained;
}

void Told::take_over(const Told& other) {
  for (size_t i = 0; i < kMost; ++i)
    sentences_[i].store(other.sentences_[i].load(std::memory_order_relaxed),
                        std::memory_order_relaxed);
}

void forget_explained() {
  for (Count& count : counts) count.objects.store(0, std::memory_order_relaxed);
}

void explain(Told& told, const char* sentence, ...) {
  va_list arguments;
  va_start(arguments, sentence);
  explain_with(told, sentence, arguments);
  va_end(arguments);
}

int refuse(Told& told, int error, const char* sentence, ...) {
  va_list arguments;
  va_start(arguments, sentence);
  explain_with(told, sentence, arguments);
  va_end(arguments);
  return error;
}

int refuse_in_child() {
  static std::atomic<unsigned> told_in{0};
  const unsigned here = generation();
  // With --check a finding reports this.
  if (told_in.exchange(here, std::memory_order_relaxed) == here || settings().checked())
    return ENODEV;
  log(LogLevel::kWarn,
      "process %d uses verbs objects of the process that it is a fork of, where they cannot work: "
      "calls fail with ENODEV. Open the device after fork() or daemon(), in each process that uses "
      "it",
      getpid());
  return ENODEV;
}

int refuse_because(Told& told, int error, const char* caller, const char* why) {
  if (log_enabled(LogLevel::kWarn) && told.first(why)) log(LogLevel::kWarn, "%s: %s", caller, why);
  return error;
}

}  // namespace uiw::core
