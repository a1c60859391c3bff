// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/settings.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/check_options.h"
#include "core/device_choice.h"
#include "core/edit_distance.h"
#include "core/log.h"
#include "core/shake_options.h"
#include "core/trace_options.h"

namespace uiw::core {
namespace {

constexpr uint32_t kMaxMilliseconds = 600'000;

constexpr SettingInfo kTable[] = {
    {"UIWARP_CRC", "auto|on|off", "auto",
     "Ask the peer for a CRC on every FPDU. auto: ask, except if both ends are on one host. If the "
     "peer asks for CRCs, it gets them in any case."},
    {"UIWARP_MODE", "auto|exclusive", "auto",
     "What to do on a host that has RDMA devices of its own. auto: leave them visible and show no "
     "uiwarp devices; exclusive: hide them and show only uiwarp's."},
    {"UIWARP_ENGINE", "auto|io_uring|epoll", "auto",
     "The system interface with which the engine waits for I/O. auto: io_uring, or epoll under "
     "valgrind and where the system refuses io_uring, as container profiles often do."},
    {"UIWARP_ENGINES", "auto|1..64", "auto",
     "Number of engine threads among which the connections of a process are divided, by completion "
     "queue. A completion queue with completion vector N uses thread N; one with vector 0 uses the "
     "thread with the lowest load. auto: one thread for every two CPUs that the process may use, "
     "at most 8."},
    {"UIWARP_ENGINE_CPU", "follow|free", "follow",
     "Where the engine thread runs. follow: on the CPU where its packets arrive, or, for a bulk "
     "stream, on another one; free: as the scheduler decides."},
    {"UIWARP_POLL_PROGRESS", "on|off", "on",
     "If a program keeps polling an empty completion queue, these polls, instead of the engine, "
     "receive for its connections and continue sends for which a socket was full."},
    {"UIWARP_FACE", "iwarp|roce", "iwarp",
     "The kind of adapter that programs see. iwarp: iWARP adapters, which is what they are on the "
     "wire; roce: RoCE adapters, for programs that refuse iWARP or use features that iWARP does "
     "not have. `uiwarp run --as roce` sets it."},
    {"UIWARP_COMPLETIONS", "auto|sent|acknowledged", "auto",
     "When a Send or RDMA Write completes. sent: when TCP has taken it, as in iWARP; acknowledged: "
     "when the peer has received or placed it, as in InfiniBand and RoCE, so that an error at the "
     "peer completes the request that caused it. auto: as UIWARP_FACE implies."},
    {"UIWARP_MPA_REVISION", "1|2", "2",
     "MPA revision for outgoing connections. 2 negotiates read depths and a ready-to-receive frame "
     "(RFC 6581)."},
    {"UIWARP_MPA_FALLBACK", "on|off", "on",
     "Connect again with MPA revision 1 if the peer closes the connection instead of answering "
     "revision 2."},
    {"UIWARP_MPA_MARKERS", "on|off", "off",
     "Ask the peer for MPA markers. uiwarp checks and discards them; it never needs them. If the "
     "peer asks for markers, it gets them in any case."},
    {"UIWARP_PEER_TO_PEER", "on|off", "on",
     "Ask for a ready-to-receive frame, so that the accepting side may send first (RFC 6581)."},
    {"UIWARP_MPA_RTR", "any|read|write", "any",
     "The ready-to-receive frame to offer when connecting, and to prefer when accepting. any: "
     "offer both, prefer read."},
    {"UIWARP_WAKE_PEER", "on|off", "on",
     "After connecting, send an empty RDMA Write after 10 ms (or twice the time that the peer took "
     "to reply, up to 100 ms), 100 ms and 1 s, as long as the peer has sent nothing: Linux siw "
     "does not process data that arrives too early until more arrives."},
    {"UIWARP_LONG_FPDUS", "on|off", "on",
     "Between two uiwarp ends, on: an FPDU may span several TCP segments, and empty RDMA Writes "
     "announce large messages, which saves CPU time; off: each FPDU fits one segment (RFC 5044 "
     "5.1) and nothing is announced, for packet captures and comparisons."},
    {"UIWARP_PORTS", "auto|FIRST-LAST", "auto",
     "TCP ports for queue pairs that programs connect without rdma_cm, such as 18515-18530; a "
     "process needs one port for every 256 such queue pairs. A firewall must let these ports in. "
     "auto: the system chooses."},
    {"UIWARP_CONNECT_TIMEOUT_MS", "milliseconds 1..600000", "10000",
     "Time within which the peer must accept the TCP connection."},
    {"UIWARP_REPLY_TIMEOUT_MS", "milliseconds 1..600000", "30000",
     "Time within which the remote application must accept or reject, once the TCP connection is "
     "established."},
    {"UIWARP_REQUEST_TIMEOUT_MS", "milliseconds 1..600000", "5000",
     "Time within which an accepted TCP connection must deliver its whole MPA Request."},
    {"UIWARP_CLOSE_TIMEOUT_MS", "milliseconds 1..600000", "5000",
     "After a disconnect, uiwarp sends what is left and waits for the peer to close its side. If "
     "nothing moves for this long, or all of it takes 12 times this, the connection is reset."},
    {"UIWARP_PEER_TIMEOUT_MS", "milliseconds 0..600000", "30000",
     "How long the peer's host may be silent while TCP waits for its answer, or, on an idle "
     "connection, for the answer to probes that begin after half of this time; then the connection "
     "has failed. A queue pair with a time-out of its own uses that while requests are "
     "outstanding. 0: no probes, and TCP's own limit of a quarter of an hour."},
    {"UIWARP_RNR_WAIT_MS", "milliseconds 0..600000", "2000",
     "How long a message may wait for a receive to be posted; 0: the connection ends at once. If "
     "this is not set, a message waits for ever at a queue pair with an rnr_retry of 7, or, with "
     "the RoCE face and rdma_cm, an rnr_retry_count of 7."},
    {"UIWARP_DEVICES", "auto|all|NAMES", "auto",
     "Network interfaces that get a device, separated by commas: lo,eth*. Names after ! or - are "
     "left out: !lo,!docker*. auto: all interfaces, but with the RoCE face lo only if no other "
     "interface leads to other hosts; the first device then has 127.0.0.1."},
    {"UIWARP_CHECK", "off|on|OPTION,...", "off",
     "Look for misuse of the verbs, report it on standard error and end with status 66. `uiwarp "
     "run --check` sets it. OPTION: exit=N, another status, 0 for the program's own; halt=1, end "
     "at the first finding; hints=1, report uncertain findings, too; json=FILE, write the findings "
     "to FILE; github=1, print annotations for GitHub workflows; suppressions=FILE, findings to "
     "leave out; max=N, show at most N findings."},
    {"UIWARP_FAULTS", "off|none|FILE", "off",
     "Inject the faults that the rules of FILE describe: calls, requests, connections and devices "
     "that fail, slow peers. FILE is a path, the name of ready-made rules, or none, to start "
     "without rules. `uiwarp run --faults` sets it; `uiwarp faults` explains rules, and changes "
     "them while a program runs."},
    {"UIWARP_SHAKE", "off|SEED[,only=NAME...][,without=NAME...]", "off",
     "Vary by this 64-bit seed what the standards leave open, in ways that programs do not expect: "
     "completions that come late, or in other batches and orders, data whose end is placed first, "
     "late events, keys that are used again. `uiwarp run --shake` sets it. only, without: select "
     "what is varied, by the names in doc/shake.md."},
    {"UIWARP_TRACE", "off|FILE[,size=N][,fpdus]", "off",
     "Record each work request, its completion and what happens to queue pairs in FILE, which "
     "`uiwarp trace` shows; %p in the name stands for the process id. `uiwarp run --trace` sets "
     "it. size: size of the file, 64K..1G, 64M by default; the newest records are kept. fpdus: "
     "also record each FPDU that is sent or received, for `uiwarp trace --pcap`."},
    {"UIWARP_RUNTIME_DIR", "auto|/DIRECTORY", "auto",
     "Directory for the files that programs see below /sys/class/infiniband and /dev/infiniband. "
     "It must belong to the user and be writable by nobody else, or belong to root and be sticky; "
     "if it cannot be used, uiwarp says so and continues as with auto. auto: the first of "
     "XDG_RUNTIME_DIR, /dev/shm and /tmp that meets these conditions."},
    {"UIWARP_LOG", "error|warn|info|debug", "warn",
     "Print messages up to this level on standard error. debug: also what devices, queue pairs and "
     "connections do. With info and debug each line has the time (UTC), the process id and the "
     "level."},
    {"UIWARP_LOG_FILE", "off|FILE", "off",
     "Append messages to FILE instead, each with time, process id and level; %p in the name stands "
     "for the process id."},
};

// Not settings: variables that tests use.
constexpr std::string_view kTestPrefix = "UIWARP_TEST_";
constexpr std::string_view kPrefix = "UIWARP_";

const SettingInfo* find(std::string_view name) {
  for (const SettingInfo& info : kTable) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

// The setting that a wrong name probably means, or null. The common prefix does not count.
const char* nearest(std::string_view name) {
  const std::string_view own = name.substr(kPrefix.size());
  size_t least = own.size() / kLettersForOneWrong + 1;
  const char* best = nullptr;
  for (const SettingInfo& info : kTable) {
    const size_t away = edit_distance(own, std::string_view(info.name).substr(kPrefix.size()));
    if (away >= least) continue;
    least = away;
    best = info.name;
  }
  return best;
}

template <class T>
struct Choice {
  std::string_view text;
  T value;
};

template <class T, size_t count>
bool choose(std::string_view text, const Choice<T> (&choices)[count], T& out) {
  for (const auto& choice : choices) {
    if (text != choice.text) continue;
    out = choice.value;
    return true;
  }
  return false;
}

bool on_off(std::string_view text, bool& out) {
  return choose(text, (const Choice<bool>[]){{"on", true}, {"off", false}}, out);
}

bool number(std::string_view text, uint32_t least, uint32_t most, uint32_t& out) {
  uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (value < least || value > most) return false;
  out = value;
  return true;
}

bool milliseconds(std::string_view text, uint32_t least, uint32_t& out) {
  return number(text, least, kMaxMilliseconds, out);
}

bool engines(std::string_view text, uint32_t& out) {
  if (text != "auto") return number(text, 1, Settings::kMostEngines, out);
  out = 0;
  return true;
}

constexpr char kRangeOfPorts[] =
    "a range is two TCP ports from 1024 to 65535, the lower one first, as 18515-18530";
constexpr uint16_t kLeastPort = 1024;  // those below are root's

bool ports(std::string_view text, uint16_t& first, uint16_t& last) {
  if (text == "auto") {
    first = last = 0;
    return true;
  }
  const char* const end = text.data() + text.size();
  uint16_t low = 0, high = 0;
  const auto [dash, error] = std::from_chars(text.data(), end, low);
  if (error != std::errc() || dash == end || *dash != '-') return false;
  const auto [rest, error2] = std::from_chars(dash + 1, end, high);
  if (error2 != std::errc() || rest != end || low < kLeastPort || high < low) return false;
  first = low;
  last = high;
  return true;
}

bool check_options(std::string_view text, char (&out)[sizeof Settings::check]) {
  CheckOptions options;
  if (text.size() >= sizeof out || !parse_check_options(text, options)) return false;
  if (!options.on) text = "off";
  out[text.copy(out, text.size())] = 0;
  return true;
}

bool trace_options(std::string_view text, Settings& out) {
  TraceOptions options;
  if (text.size() >= sizeof out.trace || !parse_trace_options(text, options)) return false;
  out.trace[text.copy(out.trace, text.size())] = 0;
  out.trace_fpdus = options.fpdus;
  return true;
}

bool file(std::string_view text, char (&out)[Settings::kLongestPath + 1]) {
  if (text.empty() || text.size() >= sizeof out) return false;
  out[text.copy(out, text.size())] = 0;
  return true;
}

bool shake_options(std::string_view text, char (&out)[sizeof Settings::shake]) {
  ShakeOptions options;
  if (text.size() >= sizeof out || (text != "off" && !parse_shake_options(text, options)))
    return false;
  out[text.copy(out, text.size())] = 0;
  return true;
}

bool directory(std::string_view text, char (&out)[Settings::kLongestPath + 1]) {
  const bool own_choice = text == "auto";
  if (!own_choice && (text.size() >= sizeof out || !text.starts_with('/'))) return false;
  out[own_choice ? 0 : text.copy(out, text.size())] = 0;
  return true;
}

bool device_list(std::string_view text, char (&out)[Settings::kLongestList + 1]) {
  if (text == "all") text = "*";
  if (text == "auto")
    text = "";
  else if (text.size() >= sizeof out || !is_device_list(text))
    return false;
  out[text.copy(out, text.size())] = 0;
  return true;
}

bool assign(std::string_view name, std::string_view text, Settings& out) {
  if (name == "UIWARP_CRC") {
    return choose(text,
                  (const Choice<CrcPolicy>[]){
                      {"auto", CrcPolicy::kAuto}, {"on", CrcPolicy::kOn}, {"off", CrcPolicy::kOff}},
                  out.crc);
  }
  if (name == "UIWARP_MODE") {
    return choose(
        text,
        (const Choice<HostMode>[]){{"auto", HostMode::kAuto}, {"exclusive", HostMode::kExclusive}},
        out.mode);
  }
  if (name == "UIWARP_ENGINE") {
    return choose(text,
                  (const Choice<EngineKind>[]){{"auto", EngineKind::kAuto},
                                               {"io_uring", EngineKind::kIoUring},
                                               {"epoll", EngineKind::kEpoll}},
                  out.engine);
  }
  if (name == "UIWARP_ENGINES") return engines(text, out.engines);
  if (name == "UIWARP_ENGINE_CPU") {
    return choose(
        text,
        (const Choice<EngineCpu>[]){{"follow", EngineCpu::kFollow}, {"free", EngineCpu::kFree}},
        out.engine_cpu);
  }
  if (name == "UIWARP_MPA_REVISION") {
    return choose(text, (const Choice<uint32_t>[]){{"1", 1}, {"2", 2}}, out.mpa_revision);
  }
  if (name == "UIWARP_MPA_FALLBACK") return on_off(text, out.mpa_fallback);
  if (name == "UIWARP_MPA_MARKERS") return on_off(text, out.mpa_markers);
  if (name == "UIWARP_PEER_TO_PEER") return on_off(text, out.peer_to_peer);
  if (name == "UIWARP_MPA_RTR") {
    return choose(text,
                  (const Choice<RtrKind>[]){
                      {"any", RtrKind::kAny}, {"read", RtrKind::kRead}, {"write", RtrKind::kWrite}},
                  out.mpa_rtr);
  }
  if (name == "UIWARP_FACE") {
    return choose(text, (const Choice<Face>[]){{"iwarp", Face::kIwarp}, {"roce", Face::kRoce}},
                  out.face);
  }
  if (name == "UIWARP_COMPLETIONS") {
    return choose(text,
                  (const Choice<Completions>[]){{"auto", Completions::kAuto},
                                                {"sent", Completions::kSent},
                                                {"acknowledged", Completions::kAcknowledged}},
                  out.completions);
  }
  if (name == "UIWARP_POLL_PROGRESS") return on_off(text, out.poll_progress);
  if (name == "UIWARP_WAKE_PEER") return on_off(text, out.wake_peer);
  if (name == "UIWARP_LONG_FPDUS") return on_off(text, out.long_fpdus);
  if (name == "UIWARP_PORTS") return ports(text, out.first_port, out.last_port);
  if (name == "UIWARP_CONNECT_TIMEOUT_MS") return milliseconds(text, 1, out.connect_timeout_ms);
  if (name == "UIWARP_REPLY_TIMEOUT_MS") return milliseconds(text, 1, out.reply_timeout_ms);
  if (name == "UIWARP_REQUEST_TIMEOUT_MS") return milliseconds(text, 1, out.request_timeout_ms);
  if (name == "UIWARP_CLOSE_TIMEOUT_MS") return milliseconds(text, 1, out.close_timeout_ms);
  if (name == "UIWARP_PEER_TIMEOUT_MS") return milliseconds(text, 0, out.peer_timeout_ms);
  if (name == "UIWARP_RNR_WAIT_MS") {
    out.rnr_wait_set = milliseconds(text, 0, out.rnr_wait_ms);
    return out.rnr_wait_set;
  }
  if (name == "UIWARP_DEVICES") return device_list(text, out.devices);
  if (name == "UIWARP_CHECK") return check_options(text, out.check);
  if (name == "UIWARP_FAULTS") return file(text, out.faults);
  if (name == "UIWARP_SHAKE") return shake_options(text, out.shake);
  if (name == "UIWARP_TRACE") return trace_options(text, out);
  if (name == "UIWARP_RUNTIME_DIR") return directory(text, out.runtime_dir);
  if (name == "UIWARP_LOG") {
    return choose(text, (const Choice<int>[]){{"error", 0}, {"warn", 1}, {"info", 2}, {"debug", 3}},
                  out.log_level);
  }
  if (name == "UIWARP_LOG_FILE") {
    if (text != "off") return file(text, out.log_file);
    out.log_file[0] = 0;
    return true;
  }
  return false;
}

constinit Settings process_settings;
constinit int process_error = 0;
constinit std::atomic<bool> loaded{false};
pthread_once_t once = PTHREAD_ONCE_INIT;

void warn_of_typos() {
  if (process_settings.log_level < static_cast<int>(LogLevel::kWarn)) return;
  for (const std::string& misspelt : misspelt_settings())
    log_unfiltered("%s; `uiwarp settings` lists them", misspelt.c_str());
}

void load() {
  // A set-uid program must not trust the environment of its caller.
  if (getauxval(AT_SECURE) != 0) return;
  for (const SettingInfo& info : kTable) {
    const char* text = std::getenv(info.name);
    if (text == nullptr) continue;
    std::string problem;
    if (parse_setting(info.name, text, process_settings, problem)) continue;
    process_error = EINVAL;
    log_unfiltered("%s", problem.c_str());
  }
  warn_of_typos();
}

void load_once() {
  if (loaded.load(std::memory_order_acquire)) return;
  pthread_once(&once, [] {
    load();
    loaded.store(true, std::memory_order_release);
  });
}

}  // namespace

std::span<const SettingInfo> setting_table() {
  return kTable;
}

const Settings& settings() {
  load_once();
  return process_settings;
}

int settings_error() {
  load_once();
  return process_error;
}

std::vector<std::string> misspelt_settings() {
  std::vector<std::string> sentences;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; variable++) {
    std::string_view text = *variable;
    std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with(kPrefix) || find(name) != nullptr || name.starts_with(kTestPrefix))
      continue;
    const char* const meant = nearest(name);
    sentences.push_back("there is no setting " + std::string(name) + ", it has no effect" +
                        (meant ? std::string(". Perhaps ") + meant : ""));
  }
  return sentences;
}

bool parse_setting(const char* name, const char* text, Settings& out, std::string& problem) {
  const SettingInfo* info = find(name);
  if (info == nullptr) {
    problem = std::string("there is no setting ") + name + "; `uiwarp settings` lists them";
    return false;
  }
  if (assign(name, text, out)) return true;
  CheckOptions ignored;
  std::string word;  // the wrong part
  if (std::string_view(name) == "UIWARP_CHECK") parse_check_options(text, ignored, &word);
  TraceOptions unused;
  if (std::string_view(name) == "UIWARP_TRACE") parse_trace_options(text, unused, &word);
  ShakeOptions unheeded;
  if (std::string_view(name) == "UIWARP_SHAKE") parse_shake_options(text, unheeded, &word);
  if (std::string_view(name) == "UIWARP_PORTS") word = kRangeOfPorts;
  problem = std::string(name) + "='" + text + "' is not valid" + (word.empty() ? "" : ": ") + word +
            "; allowed: " + info->type + " (default " + info->fallback +
            "). Correct or unset it; until then no device can be opened";
  return false;
}

}  // namespace uiw::core
