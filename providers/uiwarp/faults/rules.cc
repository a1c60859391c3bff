// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/rules.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "core/gid.h"
#include "core/printable.h"

namespace uiw::faults {
namespace {

constexpr std::string_view kSpace = " \t\r";
std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  for (size_t at = 0; (at = line.find_first_not_of(kSpace, at)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::string joined(std::span<const std::string_view> words) {
  std::string all;
  for (const std::string_view word : words) all += (all.empty() ? "" : " ") + std::string(word);
  return all;
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

struct Unit {
  std::string_view name;
  uint64_t factor;
};
struct Scaled {
  uint64_t count, factor;
  uint64_t value() const { return count * factor; }  // no overflow: a count has 32 bits
};

// A number with one of these units; the first that it ends with.
std::optional<Scaled> scaled(std::string_view text, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto count = number<uint32_t>(text.substr(0, text.size() - unit.name.size()));
    return count ? std::optional<Scaled>({*count, unit.factor}) : std::nullopt;
  }
  return {};
}

std::optional<core::Nanoseconds> duration(std::string_view text, core::Nanoseconds most) {
  constexpr Unit kUnits[] = {
      {"us", core::kMicrosecond}, {"ms", core::kMillisecond}, {"s", core::kSecond}};
  const auto time = scaled(text, kUnits);
  if (!time || time->value() > static_cast<uint64_t>(most)) return {};
  return static_cast<core::Nanoseconds>(time->value());
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

std::string list_of_events(Form form) {
  std::string all;
  for (const EventInfo& event : event_table())
    if (event.form == form) all += (all.empty() ? "" : ", ") + std::string(event.name);
  return all;
}

std::string quoted(std::string_view word) {
  constexpr size_t kMost = 60;  // of a word that is too long to be one
  return "'" + core::printable(word.substr(0, kMost)) + (word.size() > kMost ? "...'" : "'");
}

std::string all_words() {
  std::string all = "seed N";
  for (const Word& word : word_table()) all += ", " + written(word);
  return all;
}

const Word* find_word(std::string_view name) {
  const auto found = std::ranges::find(word_table(), name, &Word::name);
  return found == word_table().end() ? nullptr : &*found;
}

Key key_of(const Word& word) {
  return static_cast<Key>(&word - word_table().data());
}

// One line. Each function returns what is wrong, without the line's number.
class Line {
 public:
  std::string parse(std::span<const std::string_view> words) {
    for (const std::string_view word : words) {
      const std::string problem = look(word);
      if (!problem.empty()) return problem;
    }
    if (!form_)
      return quoted(words.front()) + ": a rule needs a word that says what it is about: " + forms();
    for (Said& said : said_) {
      const std::string problem = take(said);
      if (!problem.empty()) return problem;
    }
    return whole(words.front());
  }
  const Rule& rule() const { return rule_; }

 private:
  struct Said {
    std::string_view text;  // all of it
    const Word* word;
    std::string_view value;
  };

  static std::string forms() {
    std::string all;
    for (const Word& word : word_table())
      if (word.role == Role::kForm) all += (all.empty() ? "" : ", ") + written(word);
    return all;
  }

  // Whether there is such a word, once.
  std::string look(std::string_view text) {
    const size_t equals = text.find('=');
    const Word* const word = find_word(text.substr(0, equals));
    if (!word) return "there is no " + quoted(text) + "; allowed: " + all_words();
    if (find(word->name)) return quoted(text) + ": " + word->name + " is there twice";
    said_.push_back({text, word, equals == text.npos ? "" : text.substr(equals + 1)});
    if (word->role != Role::kForm) return "";
    if (form_) return quoted(text) + ": a rule is about one of " + forms();
    form_ = static_cast<Form>(std::countr_zero(word->forms));
    return "";
  }

  const Said* find(std::string_view name) const {
    const auto found =
        std::ranges::find_if(said_, [&](const Said& each) { return each.word->name == name; });
    return found == said_.end() ? nullptr : &*found;
  }

  // Whether it may be in such a rule, with this value.
  std::string take(Said& said) {
    // Several may have this name.
    for (const Word& word : word_table())
      if (word.fits(*form_) && std::string_view(word.name) == said.word->name) said.word = &word;
    const Role role = said.word->role;
    const bool has_value = said.text.find('=') != said.text.npos;
    if (!said.word->fits(*form_)) {
      std::string allowed;
      for (const Role each : {Role::kWhich, Role::kWhat, Role::kDetail}) {
        const std::string words = words_of(*form_, each, ", ");
        if (!words.empty()) allowed += (allowed.empty() ? "" : ", ") + words;
      }
      return quoted(said.text) + ": with " + form_word(*form_) + " a rule has " + allowed;
    }
    if (said.word->value && !has_value)
      return quoted(said.text) + " needs a value: " + said.word->name + "=...";
    if (!said.word->value && has_value)
      return quoted(said.text) + ": " + said.word->name + " has no value";
    if (role == Role::kWhich && std::exchange(has_which_, true))
      return quoted(said.text) + ": a rule has one of " + words_of(*form_, role, ", ");
    if (role == Role::kWhat && std::exchange(what_, &said))
      return quoted(said.text) + ": a rule has one of " + words_of(*form_, role, ", ");
    const std::string allowed = value(key_of(*said.word), said.value);
    if (allowed.empty()) return "";
    return quoted(said.text) + ": allowed for " + said.word->name + ": " + allowed;
  }

  // What is allowed, when the value is not.
  std::string value(Key key, std::string_view text) {
    switch (key) {
      case Key::kVerb:
      case Key::kOp:
        return event(text);
      case Key::kConnect:
        rule_.event = Event::kConnect;
        return "";
      case Key::kAccept:
        rule_.event = Event::kAccept;
        return "";
      case Key::kQp:
        return text == "*" ? "" : "*, since each queue pair counts for itself";
      case Key::kPort:
        return port(text);
      case Key::kNth:
        return count(text, When::kNth);
      case Key::kEvery:
        return count(text, When::kEvery);
      case Key::kProbability:
        return probability(text);
      case Key::kErrno:
        return error(text);
      case Key::kStatus:
        rule_.action = Action::kStatus;
        return "";  // whole() looks at it
      case Key::kDelay:
        return delay(text);
      case Key::kDrop:
        rule_.action = Action::kDrop;
        return "";
      case Key::kDuplicate:
        rule_.action = Action::kDuplicate;
        return "";
      case Key::kReorder:
        rule_.action = Action::kReorder;
        return "";
      case Key::kReject:
        rule_.action = Action::kReject;
        return "";
      case Key::kTimeout:
        rule_.action = Action::kTimeOut;
        return "";
      case Key::kUnreachable:
        rule_.action = Action::kUnreachable;
        return "";
      case Key::kReset:
        rule_.action = Action::kReset;
        return "";
      case Key::kAfter:
        return after(text);
      case Key::kDevice:
        rule_.event = Event::kTime;
        rule_.device = text;
        return text.empty() ? "NAME or *" : "";
      case Key::kGid:
        rule_.event = Event::kTime;
        rule_.device = "*";
        rule_.action = Action::kShiftGids;
        return text == "shift" ? "" : "shift";
      case Key::kCq:
        rule_.event = Event::kCompletion;
        return text == "*" ? "" : "*, since each completion queue counts for itself";
      case Key::kAt:
        return time(text, rule_.at);
      case Key::kFor:
        return time(text, rule_.lasts);
      case Key::kPortDown:
        rule_.action = Action::kPortDown;
        return text == "down" ? "" : "down";
      case Key::kEvent:
        return async(text);
      case Key::kPeer:
        return peer(text);
      case Key::kRate:
        return rate(text);
      case Key::kPeerDelay: {
        const std::string wrong = delay(text);
        rule_.action = Action::kPace;
        return wrong;
      }
      case Key::kOverrun:
        rule_.action = Action::kOverrun;
        return "";
    }
    return "";
  }

  std::string event(std::string_view text) {
    for (size_t i = 0; i < kEvents; ++i) {
      rule_.event = static_cast<Event>(i);
      if (info(rule_.event).form == *form_ && text == info(rule_.event).name) return "";
    }
    return list_of_events(*form_);
  }
  std::string port(std::string_view text) {
    const auto value = number<uint16_t>(text);
    if (!value || *value == 0) return "a number from 1 to 65535";
    rule_.port = *value;
    return "";
  }
  std::string count(std::string_view text, When when) {
    const auto value = number<uint64_t>(text);
    if (!value || *value == 0) return "a number from 1 on";
    rule_.number = *value;
    rule_.when = when;
    return "";
  }
  std::string probability(std::string_view text) {
    const auto value = number<double>(text);
    if (!value || !(*value > 0 && *value <= 1)) return "a number above 0 and at most 1, as 0.01";
    rule_.probability = *value;
    rule_.when = When::kProbability;
    return "";
  }
  std::string error(std::string_view text) {
    const auto value = value_of(errno_names(), text);
    if (!value) return list(errno_names());
    rule_.error = *value;
    rule_.action = Action::kErrno;
    return "";
  }
  std::string delay(std::string_view text) {
    const size_t dots = text.find("..");
    const auto least = duration(text.substr(0, dots), kLongestDelay);
    const auto most = dots == text.npos ? least : duration(text.substr(dots + 2), kLongestDelay);
    if (!least || !most || *most < *least || *most == 0)
      return "TIME or MIN..MAX above 0, as 5ms..20ms, with us, ms or s, at most 60s";
    rule_.least = *least;
    rule_.most = *most;
    rule_.action = Action::kDelay;
    return "";
  }
  std::string peer(std::string_view text) {
    const std::string address(text);
    rule_.event = Event::kDeparture;
    rule_.action = Action::kPace;
    if (address == "*") return "";
    in_addr ipv4;
    if (inet_pton(AF_INET, address.c_str(), &ipv4) == 1) {
      rule_.peer = core::mapped(ipv4);
      return "";
    }
    if (inet_pton(AF_INET6, address.c_str(), &rule_.peer) == 1) return "";
    return "an address, as 10.0.0.2 or fd00::2, or *, any";
  }
  std::string rate(std::string_view text) {
    constexpr Unit kUnits[] = {{"Gbit", 1000000000}, {"Mbit", 1000000}, {"Kbit", 1000}};
    const auto bits = scaled(text, kUnits);
    if (bits && bits->count > 0 && bits->count <= 1000000) {
      rule_.rate = bits->value();
      return "";
    }
    return "a number from 1 to 1000000 with Kbit, Mbit or Gbit, as 1Gbit";
  }
  std::string time(std::string_view text, core::Nanoseconds& out) {
    const auto value = duration(text, kLatest);
    if (!value || *value == 0)
      return "TIME above 0, as 500ms or 3s, with us, ms or s, at most 86400s";
    out = *value;
    return "";
  }
  std::string async(std::string_view text) {
    constexpr std::string_view kPrefix = "IBV_EVENT_";
    if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
    const auto value = value_of(async_names(), text);
    if (!value) return list(async_names());
    rule_.async = static_cast<ibv_event_type>(*value);
    rule_.action = Action::kAsync;
    return "";
  }
  std::string after(std::string_view text) {
    constexpr Unit kUnits[] = {{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"", 1}};
    const auto bytes = scaled(text, kUnits);
    if (!bytes) return "a number of bytes, as 100, 2KiB, 1MiB or 1GiB";
    rule_.bytes = bytes->value();
    return "";
  }
  // Which ones are allowed the request says.
  std::string status(const Said& said) {
    constexpr std::string_view kPrefix = "IBV_WC_";
    std::string_view text = said.value;
    if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
    const auto names = rule_.event == Event::kRecv     ? receive_status_names()
                       : rule_.event == Event::kUdSend ? datagram_status_names()
                                                       : status_names();
    const auto value = value_of(names, text);
    if (!value)
      return quoted(said.text) + ": allowed for op=" + info(rule_.event).name + ": " + list(names);
    rule_.status = static_cast<ibv_wc_status>(*value);
    return "";
  }

  // Whether the words make a rule together.
  std::string whole(std::string_view first) {
    const std::string whats = words_of(*form_, Role::kWhat, " or ");
    if (!what_ && !whats.empty())
      return quoted(first) + ": what is to happen? A rule with " + form_word(*form_) + " needs " +
             whats;
    if (const Said* const said = find("after"); said && rule_.action != Action::kReset)
      return quoted(said->text) + ": after= goes with reset";
    if (const Said* const said = find("for"); said && rule_.action != Action::kPortDown)
      return quoted(said->text) + ": for= goes with port=down";
    if (rule_.event == Event::kTime && !find("at"))
      return quoted(first) + ": when? A rule with " + form_word(*form_) + " needs at=TIME";
    if (rule_.event == Event::kDeparture && !find("rate") && !find("delay"))
      return quoted(first) + ": what is to happen? A rule with " + form_word(*form_) +
             " needs rate=BITS or delay=MIN..MAX, or both";
    if (*form_ == Form::kOp && !may_happen(rule_.event, rule_.action))
      return quoted(what_->text) + ": allowed for op=" + info(rule_.event).name + ": " +
             actions_of(rule_.event);
    const Said* const said = find("status");
    return said ? status(*said) : "";
  }

  static const char* actions_of(Event event) {
    if (event == Event::kUdSend) return "drop, status=S";
    if (event == Event::kUdRecv) return "drop, duplicate, reorder, delay=MIN..MAX";
    return "status=S, delay=MIN..MAX";
  }
  static bool may_happen(Event event, Action action) {
    if (event == Event::kUdSend) return action == Action::kDrop || action == Action::kStatus;
    if (action == Action::kDelay) return true;
    const bool is_datagrams =
        action == Action::kDrop || action == Action::kDuplicate || action == Action::kReorder;
    return is_datagrams == (event == Event::kUdRecv);
  }

  Rule rule_;
  std::optional<Form> form_;
  bool has_which_ = false;
  std::vector<Said> said_;      // complete before any is taken
  const Said* what_ = nullptr;  // of said_: what is to happen
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
    const auto words = split(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    Line parsed;
    const bool is_seed = words.front() == "seed";
    const std::string problem = is_seed ? parse_seed(words, seeded, out.seed) : parsed.parse(words);
    if (!problem.empty()) return "line " + std::to_string(line) + ": " + problem;
    if (is_seed) continue;
    out.list.push_back(parsed.rule());
    out.list.back().line = line;
    out.list.back().text = joined(words);
  }
  return out.list.empty() ? "there is no rule in it" : "";
}

}  // namespace uiw::faults
