// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The settings of a user, by environment variables UIWARP_*. The table in settings.cc has type,
// default and help of each; doc/settings.md and `uiwarp doctor` print that table. They are read
// once, at first use. A wrong value is reported on standard error with the variable and the allowed
// values, and makes opening a device fail with EINVAL; it is never silently replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uiw::core {

enum class CrcPolicy {
  kAuto,
  kOn,
  kOff
};  // auto: off between processes of this host, on otherwise
enum class HostMode { kAuto, kExclusive };  // auto: stay away where the host has RDMA devices
enum class EngineKind { kAuto, kIoUring, kEpoll };  // auto: epoll where io_uring is refused
enum class EngineCpu { kFollow, kFree };            // follow: run on the CPU where packets arrive

// The kind of device that programs see: device/face.h.
enum class Face { kIwarp, kRoce };
// When a Send or Write completes: once TCP has taken it, or once the peer has received it. auto: as
// with devices of that face.
enum class Completions { kAuto, kSent, kAcknowledged };

enum class RtrKind {
  kAny,
  kRead,
  kWrite
};  // RFC 6581 9.2; any: both are offered, Read is chosen first

struct Settings {
  static constexpr uint32_t kMostEngines = 64;
  static constexpr size_t kLongestPath = 1023;  // bytes; leaves room for names below, up to
                                                // PATH_MAX
  static constexpr size_t kLongestList = 511;   // bytes
  static constexpr size_t kLongestShake = 255;  // bytes: a seed and each name once

  CrcPolicy crc = CrcPolicy::kAuto;
  HostMode mode = HostMode::kAuto;
  EngineKind engine = EngineKind::kAuto;
  uint32_t engines = 0;  // UIWARP_ENGINES: how many; 0: as suits the processors
  EngineCpu engine_cpu = EngineCpu::kFollow;
  uint32_t mpa_revision = 2;  // UIWARP_MPA_REVISION: 1 or 2, what we ask for as initiator
  bool mpa_fallback = true;   // UIWARP_MPA_FALLBACK: retry once with revision 1
  bool mpa_markers = false;   // UIWARP_MPA_MARKERS: ask for markers in what we receive (M bit)
  bool peer_to_peer = true;   // UIWARP_PEER_TO_PEER: ask for an RTR frame (RFC 6581 A bit)
  RtrKind mpa_rtr = RtrKind::kAny;  // UIWARP_MPA_RTR: which one
  bool wake_peer = true;            // UIWARP_WAKE_PEER: empty Writes to a silent responder
  bool long_fpdus = true;    // UIWARP_LONG_FPDUS: of several TCP segments; empty Writes before
  Face face = Face::kIwarp;  // UIWARP_FACE
  Completions completions = Completions::kAuto;  // UIWARP_COMPLETIONS
  bool poll_progress = true;  // UIWARP_POLL_PROGRESS: threads that poll an empty CQ receive
  // UIWARP_PORTS: for queue pair numbers; 0: the system chooses
  uint16_t first_port = 0, last_port = 0;
  uint32_t connect_timeout_ms = 10000;
  uint32_t reply_timeout_ms = 30000;   // until the remote application accepts
  uint32_t request_timeout_ms = 5000;  // until an accepted TCP connection sent its whole Request
  uint32_t close_timeout_ms = 5000;    // until the peer answers our FIN
  uint32_t peer_timeout_ms = 30000;    // until a silent host counts as gone; 0: TCP's own limit
  uint32_t rnr_wait_ms = 2000;         // UIWARP_RNR_WAIT_MS: 0 = strict, Terminate 0x1202 at once
  bool rnr_wait_set = false;           // whether it was set
  // UIWARP_DEVICES: core/device_choice.h; empty: all
  char devices[kLongestList + 1] = "";
  // UIWARP_CHECK as written, accepted by parse_check_options()
  char check[2 * kLongestPath + 1] = "off";
  // UIWARP_FAULTS: path of a file of rules, or off
  char faults[kLongestPath + 1] = "off";
  // UIWARP_SHAKE as written: off, or accepted by parse_shake_options()
  char shake[kLongestShake + 1] = "off";
  // UIWARP_TRACE as written, accepted by parse_trace_options()
  char trace[2 * kLongestPath + 1] = "off";
  bool trace_fpdus = false;  // its option fpdus
  // UIWARP_RUNTIME_DIR: absolute path; empty: auto
  char runtime_dir[kLongestPath + 1] = "";
  int log_level = 1;  // UIWARP_LOG: error, warn, info, debug
  // UIWARP_LOG_FILE: path of a file, or empty
  char log_file[kLongestPath + 1] = "";

  // --check is on: its findings replace some messages of the stack.
  bool checked() const { return check[0] != 'o' || check[1] != 'f'; }
  bool acknowledged() const {
    return completions == Completions::kAcknowledged ||
           (completions == Completions::kAuto && face == Face::kRoce);
  }
};

struct SettingInfo {
  const char* name;      // environment variable
  const char* type;      // "on|off", "milliseconds 0..600000", ...
  const char* fallback;  // default, as the user would write it
  const char* help;
};

// All settings, in printing order.
std::span<const SettingInfo> setting_table();

// The process's settings. Thread-safe; parsed once.
const Settings& settings();

// 0, or EINVAL when a variable held a wrong value (already reported once on standard error).
int settings_error();

// A sentence for each environment variable that has the prefix of settings but is none; it names
// the setting that may be meant. Thread: any, while no thread changes the environment.
std::vector<std::string> misspelt_settings();

// Parses one variable's text into `out`; on failure returns false and a sentence naming the
// variable and the allowed values. Exposed for tests and for `uiwarp doctor`.
bool parse_setting(const char* name, const char* text, Settings& out, std::string& problem);

}  // namespace uiw::core
