// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/rules.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>

#include "core/read_file.h"

namespace uiw::faults {
namespace {

constexpr std::string_view kSpace = " \t\r";
// Rules that the language will have.
constexpr std::string_view kLater[] = {"connect", "dev", "gid", "cq", "peer"};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  for (size_t at = 0; (at = line.find_first_not_of(kSpace, at)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// All of `text`, or nothing.
template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return {};
  return value;
}

std::optional<core::Nanoseconds> duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    core::Nanoseconds length;
  };
  constexpr Unit kUnits[] = {
      {"us", core::kMicrosecond}, {"ms", core::kMillisecond}, {"s", core::kSecond}};
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto count = number<uint32_t>(text.substr(0, text.size() - unit.name.size()));
    if (!count || *count > kLongestDelay / unit.length) return {};
    return *count * unit.length;
  }
  return {};
}

std::optional<int> value_of(std::span<const Name> names, std::string_view text) {
  for (const Name& name : names)
    if (text == name.name) return name.value;
  return {};
}

std::string list(std::span<const Name> names) {
  std::string all;
  for (const Name& name : names) all += (all.empty() ? "" : ", ") + std::string(name.name);
  return all;
}

std::string list_of_events(bool requests) {
  std::string all;
  for (size_t i = 0; i < kEvents; ++i)
    if (is_request(static_cast<Event>(i)) == requests)
      all += (all.empty() ? "" : ", ") + std::string(event_table()[i].name);
  return all;
}

std::optional<Event> event_named(std::string_view name, bool request) {
  for (size_t i = 0; i < kEvents; ++i) {
    const auto event = static_cast<Event>(i);
    if (is_request(event) == request && name == info(event).name) return event;
  }
  return {};
}

// One line. Each function returns what is wrong, without the line's number.
class Line {
 public:
  std::string parse(std::span<const std::string_view> words) {
    for (const std::string_view word : words) {
      const std::string problem = take(word);
      if (!problem.empty()) return problem;
    }
    return whole(words.front());
  }
  const Rule& rule() const { return rule_; }

 private:
  static std::string quoted(std::string_view word) { return "'" + std::string(word) + "'"; }

  std::string take(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    if (std::ranges::find(kLater, name) != std::end(kLater))
      return quoted(word) + ": rules of '" + std::string(name) +
             "' are not there yet; there are verb=NAME errno=E, op=NAME status=S and op=NAME "
             "delay=MIN..MAX";
    for (const Key& key : kKeys) {
      if (name != key.name) continue;
      if (equals == word.npos) return quoted(word) + " needs a value: " + key.name + "=...";
      if (std::ranges::find(seen_, name) != seen_.end())
        return quoted(word) + ": " + key.name + " is there twice";
      seen_.push_back(name);
      const std::string allowed = (this->*key.take)(word.substr(equals + 1));
      return allowed.empty() ? "" : quoted(word) + ": allowed for " + key.name + ": " + allowed;
    }
    return "there is no " + quoted(word) +
           "; allowed: seed N, verb=, qp=*, op=, nth=, every=, probability=, errno=, status=, "
           "delay=";
  }

  // What a key takes; they return what is allowed when the value is not.
  std::string verb(std::string_view text) {
    verb_ = event_named(text, false);
    return verb_ ? "" : list_of_events(false);
  }
  std::string op(std::string_view text) {
    op_ = event_named(text, true);
    return op_ ? "" : list_of_events(true);
  }
  std::string qp(std::string_view text) {
    return text == "*" ? "" : "*, since each queue pair counts for itself";
  }
  std::string nth(std::string_view text) { return count(text, When::kNth); }
  std::string every(std::string_view text) { return count(text, When::kEvery); }
  std::string count(std::string_view text, When when) {
    const auto value = number<uint64_t>(text);
    if (!value || *value == 0) return "a number from 1 on";
    rule_.number = *value;
    return only(when);
  }
  std::string probability(std::string_view text) {
    const auto value = number<double>(text);
    if (!value || !(*value > 0 && *value <= 1)) return "a number above 0 and at most 1, as 0.01";
    rule_.probability = *value;
    return only(When::kProbability);
  }
  std::string only(When when) {
    if (rule_.when != When::kAlways) return "one of nth, every and probability in a rule";
    rule_.when = when;
    return "";
  }
  std::string error(std::string_view text) {
    const auto value = value_of(errno_names(), text);
    if (!value) return list(errno_names());
    rule_.error = *value;
    return act(Action::kErrno);
  }
  std::string status(std::string_view text) {
    constexpr std::string_view kPrefix = "IBV_WC_";
    if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
    status_ = text;
    return act(Action::kStatus);
  }
  std::string delay(std::string_view text) {
    const size_t dots = text.find("..");
    const auto least = duration(text.substr(0, dots));
    const auto most = dots == text.npos ? least : duration(text.substr(dots + 2));
    if (!least || !most || *most < *least || *most == 0)
      return "TIME or MIN..MAX, as 5ms..20ms, with us, ms or s, at most 60s";
    rule_.least = *least;
    rule_.most = *most;
    return act(Action::kDelay);
  }
  std::string act(Action action) {
    if (acts_) return "one of errno, status and delay in a rule";
    rule_.action = action;
    acts_ = true;
    return "";
  }

  // Whether the words make a rule together.
  std::string whole(std::string_view first) {
    if (verb_ && op_) return quoted(first) + ": a rule has either verb= or op=";
    if (!verb_ && !op_) return quoted(first) + ": a rule needs verb=NAME or op=NAME";
    if (!acts_)
      return quoted(first) + ": what is to happen? A rule needs " +
             (verb_ ? "errno=E" : "status=S or delay=MIN..MAX");
    if (verb_ && rule_.action != Action::kErrno)
      return quoted(first) + ": with verb= a rule has errno=, not status= or delay=";
    if (op_ && rule_.action == Action::kErrno)
      return quoted(first) + ": with op= a rule has status= or delay=, not errno=";
    if (verb_ && std::ranges::find(seen_, "qp") != seen_.end())
      return quoted(first) + ": qp= goes with op=; calls are counted as doc/faults.md says";
    rule_.event = verb_ ? *verb_ : *op_;
    if (rule_.action != Action::kStatus) return "";
    const auto names = rule_.event == Event::kRecv ? receive_status_names() : status_names();
    const auto value = value_of(names, status_);
    if (!value)
      return "'status=" + std::string(status_) + "': allowed for op=" + info(rule_.event).name +
             ": " + list(names);
    rule_.status = static_cast<ibv_wc_status>(*value);
    return "";
  }

  struct Key {
    const char* name;
    std::string (Line::*take)(std::string_view);
  };
  static const Key kKeys[9];

  Rule rule_;
  bool acts_ = false;
  std::optional<Event> verb_, op_;
  std::string_view status_;
  std::vector<std::string_view> seen_;
};

const Line::Key Line::kKeys[9] = {
    {"verb", &Line::verb},   {"op", &Line::op},         {"qp", &Line::qp},
    {"nth", &Line::nth},     {"every", &Line::every},   {"probability", &Line::probability},
    {"errno", &Line::error}, {"status", &Line::status}, {"delay", &Line::delay},
};

std::string parse_seed(std::span<const std::string_view> words, bool& seen, uint64_t& seed) {
  const auto value = words.size() == 2 ? number<uint64_t>(words[1]) : std::nullopt;
  if (!value) return "'seed': allowed: seed N, a number from 0 on";
  if (seen) return "'seed' is there twice";
  seen = true;
  seed = *value;
  return "";
}

}  // namespace

std::string parse(std::string_view text, Rules& out) {
  out = {};
  bool seeded = false;
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    Line parsed;
    const bool is_seed = words.front() == "seed";
    const std::string problem = is_seed ? parse_seed(words, seeded, out.seed) : parsed.parse(words);
    if (!problem.empty()) return "line " + std::to_string(line) + ": " + problem;
    if (is_seed) continue;
    out.list.push_back(parsed.rule());
    out.list.back().line = line;
  }
  return out.list.empty() ? "there is no rule in it" : "";
}

std::string load(const std::string& path, Rules& out) {
  std::string text;
  if (const int error = core::read_file(path, text)) return path + ": " + std::strerror(error);
  const std::string problem = parse(text, out);
  return problem.empty() ? "" : path + ": " + problem;
}

}  // namespace uiw::faults
