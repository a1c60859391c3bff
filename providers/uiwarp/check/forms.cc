// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/forms.h"

#define JSON_NOEXCEPTION 1
#include <nlohmann/json.hpp>

#include "check/text.h"
#include "core/wrapped.h"

namespace uiw::check {
namespace {

using nlohmann::ordered_json;

std::string intro(int pid) {
  return text("==%d== uiwarp check: ", pid);
}

std::string subject(const Finding& finding) {
  return finding.wr_id ? text("%s, wr_id 0x%llx", finding.object.c_str(),
                              static_cast<unsigned long long>(*finding.wr_id))
                       : finding.object;
}

std::string where(const Frame& frame) {
  if (!frame.file.empty()) return text("%s:%d", frame.file.c_str(), frame.line);
  if (frame.module.empty()) return text("0x%llx", static_cast<unsigned long long>(frame.offset));
  return text("%s+0x%llx", frame.module.c_str(), static_cast<unsigned long long>(frame.offset));
}

// ibv_post_send() and its like come from a header of the system.
const Frame* innermost_source(const Frames& frames) {
  for (const auto& place : frames)
    for (const Frame& frame : place)
      if (!frame.file.empty() && !frame.file.starts_with("/usr/") && !is_of_libc(frame))
        return &frame;
  return nullptr;
}

// What a value of an annotation may not hold as it is.
std::string escaped(const std::string& value, bool is_property) {
  std::string result;
  for (const char c : value) {
    const bool special =
        c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','));
    result += special ? text("%%%02X", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return result;
}

std::string counted(unsigned number, const char* what) {
  return text(number == 1 ? "%u %s" : "%u %ss", number, what);
}

// Bytes of the program that are no UTF-8 are replaced.
std::string line_of(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string as_text(const Finding& finding, const Frames& frames, int pid) {
  const KindInfo& kind = info(finding.kind);
  std::string block =
      intro(pid) + (finding.hint ? "hint: " : "") + kind.name + ": " + kind.title + "\n";
  block += core::wrapped(subject(finding) + ": " + finding.what + ".", 4);
  for (size_t i = 0; i < finding.places.size(); ++i) {
    block += text("    %s at\n", finding.places[i].label);
    if (finding.places[i].stack.is_lost())
      block += "        (not kept: calls come from more different places than there is room for)\n";
    else if (frames[i].empty())
      block += "        (no stack)\n";
    for (const Frame& frame : frames[i]) {
      const char* const function = frame.function.empty() ? "?" : frame.function.c_str();
      block += "        " + std::string(function) + "  " + where(frame) + "\n";
    }
  }
  block += core::wrapped(std::string("On adapters: ") + kind.on_adapters, 4);
  block += core::wrapped(std::string("What to do: ") + kind.remedy, 4);
  return block;
}

std::string as_json(const Finding& finding, const Frames& frames, int pid) {
  const KindInfo& kind = info(finding.kind);
  ordered_json object = {{"pid", pid},
                         {"kind", kind.name},
                         {"hint", finding.hint},
                         {"title", kind.title},
                         {"object", finding.object},
                         {"what", finding.what},
                         {"on_adapters", kind.on_adapters},
                         {"remedy", kind.remedy},
                         {"places", ordered_json::array()}};
  if (finding.wr_id) object["wr_id"] = *finding.wr_id;
  for (size_t i = 0; i < finding.places.size(); ++i) {
    ordered_json place = {{"label", finding.places[i].label}, {"frames", ordered_json::array()}};
    for (const Frame& frame : frames[i]) {
      ordered_json one = {{"module", frame.module}, {"offset", frame.offset}};
      if (!frame.function.empty()) one["function"] = frame.function;
      if (!frame.file.empty()) {
        one["file"] = frame.file;
        one["line"] = frame.line;
      }
      place["frames"].push_back(std::move(one));
    }
    if (finding.places[i].stack.is_lost()) place["lost"] = true;
    object["places"].push_back(std::move(place));
  }
  return line_of(object);
}

std::string as_github(const Finding& finding, const Frames& frames) {
  const KindInfo& kind = info(finding.kind);
  std::string line = finding.hint ? "::notice " : "::error ";
  if (const Frame* frame = innermost_source(frames))
    line += text("file=%s,line=%d,", escaped(frame->file, true).c_str(), frame->line);
  line += std::string("title=uiwarp ") + kind.name + "::";
  line += escaped(subject(finding) + ": " + finding.what + ". " + kind.remedy, false);
  return line + "\n";
}

std::string summary_text(const Counts& counts, int pid) {
  std::string line = intro(pid) + counted(counts.findings(), "finding");
  if (counts.hints) line += ", " + counted(counts.hints, "hint");
  if (counts.beyond_max) line += text(", %u of them not shown (max=)", counts.beyond_max);
  if (counts.repeated) line += text(", %u repeated", counts.repeated);
  if (counts.suppressed) line += text(", %u suppressed", counts.suppressed);
  return line + "\n";
}

std::string summary_json(const Counts& counts, int pid) {
  return line_of({{"pid", pid},
                  {"findings", counts.findings()},
                  {"hints", counts.hints},
                  {"shown", counts.shown},
                  {"repeated", counts.repeated},
                  {"suppressed", counts.suppressed}});
}

}  // namespace uiw::check
