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
     "Ask the peer for a CRC on every FPDU: auto asks except between processes of one host. A peer "
     "that asks "
     "for it gets it in any case."},
    {"UIWARP_MODE", "auto|exclusive", "auto",
     "auto stays away on a host with RDMA devices of its own; exclusive hides those and shows only "
     "uiwarp's."},
    {"UIWARP_ENGINE", "auto|io_uring|epoll", "auto",
     "What the engine waits with: auto takes epoll where the system refuses io_uring, as container "
     "profiles often do, and below valgrind."},
    {"UIWARP_ENGINES", "auto|1..64", "auto",
     "How many engine threads the connections of a process are spread over, by completion queue: a "
     "queue with completion vector N has thread N, one with vector 0 the thread that fewest have. "
     "auto: one for two of the CPUs that the process may use, 8 at most."},
    {"UIWARP_ENGINE_CPU", "follow|free", "follow",
     "follow moves the engine thread to the CPU where its packets arrive, or, for a stream, away "
     "from there; free leaves it to the scheduler."},
    {"UIWARP_POLL_PROGRESS", "on|off", "on",
     "A program that keeps polling an empty completion queue receives by itself for its "
     "connections, and sends on where a socket was full, instead of the engine."},
    {"UIWARP_FACE", "iwarp|roce", "iwarp",
     "What programs see: iwarp, RDMA adapters as they are on the wire; roce, RoCE adapters, for "
     "programs that refuse iWARP or use what it does not have. `uiwarp run --as roce` sets it."},
    {"UIWARP_COMPLETIONS", "auto|sent|acknowledged", "auto",
     "When a Send or RDMA Write completes: sent, as iWARP has it, when TCP has taken it; "
     "acknowledged, as InfiniBand and RoCE have it, when the peer has received or placed it, and "
     "an error of the peer's completes the request that is to blame. auto: as UIWARP_FACE says."},
    {"UIWARP_MPA_REVISION", "1|2", "2",
     "MPA revision to connect with: 2 negotiates read depths and a ready-to-receive frame (RFC "
     "6581)."},
    {"UIWARP_MPA_FALLBACK", "on|off", "on",
     "Connect once more with MPA revision 1 when the peer closes instead of answering revision 2."},
    {"UIWARP_MPA_MARKERS", "on|off", "off",
     "Ask the peer for MPA markers, which are checked and then thrown away; never needed. A peer "
     "that asks for them gets them in any case."},
    {"UIWARP_PEER_TO_PEER", "on|off", "on",
     "Ask for a ready-to-receive frame, so that the accepting side may send first (RFC 6581)."},
    {"UIWARP_MPA_RTR", "any|read|write", "any",
     "The ready-to-receive frame to offer when connecting, and to choose first when accepting; any "
     "offers both and chooses read first."},
    {"UIWARP_WAKE_PEER", "on|off", "on",
     "After connecting, send an empty RDMA Write after 10 ms (or twice the time that the peer took "
     "to reply, up to 100 ms), 100 ms and 1 s for as long as the peer is silent: Linux siw "
     "overlooks what comes too early until more comes."},
    {"UIWARP_LONG_FPDUS", "on|off", "on",
     "Between two uiwarps an FPDU may have several TCP segments, and empty RDMA Writes go before "
     "large messages, which takes less of the processors; off: each fits one (RFC 5044 5.1) and "
     "nothing is said, for packet captures and comparisons."},
    {"UIWARP_PORTS", "auto|FIRST-LAST", "auto",
     "TCP ports on which queue pairs that programs connect without rdma_cm are reached, one for "
     "each 256 "
     "of them in a process, as a firewall has to let them in: 18515-18530, say. auto leaves the "
     "choice to the "
     "system."},
    {"UIWARP_CONNECT_TIMEOUT_MS", "milliseconds 1..600000", "10000",
     "Until the peer accepted the TCP connection."},
    {"UIWARP_REPLY_TIMEOUT_MS", "milliseconds 1..600000", "30000",
     "From the TCP connection until the remote application accepted or rejected."},
    {"UIWARP_REQUEST_TIMEOUT_MS", "milliseconds 1..600000", "5000",
     "Until an accepted TCP connection sent its whole MPA Request."},
    {"UIWARP_CLOSE_TIMEOUT_MS", "milliseconds 1..600000", "5000",
     "After a disconnect, how long nothing may move until everything has gone out and the peer has "
     "closed its side; then the connection is reset. Not longer than 12 times this in all."},
    {"UIWARP_PEER_TIMEOUT_MS", "milliseconds 0..600000", "30000",
     "How long the peer's host may say nothing while TCP waits for its answer, or, when idle, to "
     "probes that begin after half of that; then the connection has failed. A queue pair that was "
     "given a time-out of its own has that while requests are outstanding. 0: no probes, and TCP's "
     "own patience, a quarter of an hour."},
    {"UIWARP_RNR_WAIT_MS", "milliseconds 0..600000", "2000",
     "How long a message may wait for a receive to be posted; 0 ends the connection at once. Not "
     "set, it may wait for ever at a queue pair that was given an rnr_retry of 7, or, with the "
     "RoCE face, by rdma_cm an rnr_retry_count of 7."},
    {"UIWARP_DEVICES", "auto|all|NAMES", "auto",
     "Network interfaces that get a device, separated by commas: lo,eth*; with ! or - in front, "
     "those that do not: !lo,!docker*. auto: all, but with the RoCE face lo only where no other "
     "one leads to other hosts; 127.0.0.1 is the first device's there."},
    {"UIWARP_CHECK", "off|on|OPTION,...", "off",
     "Look for misuse of the verbs, report it on standard error and end with status 66. `uiwarp "
     "run "
     "--check` sets it. OPTION: exit=N, another status, 0 the program's own; halt=1, end at the "
     "first finding; hints=1, also what is not certain; json=FILE; github=1, annotations of its "
     "workflows; suppressions=FILE; max=N, how many findings are shown."},
    {"UIWARP_FAULTS", "off|none|FILE", "off",
     "Let go wrong what the rules of FILE say, or ready-made ones by their name: calls, requests, "
     "connections and devices that fail, slow peers. `uiwarp run --faults` sets it; `uiwarp "
     "faults` changes rules while a program runs, with none at first if need be, and says what "
     "they do."},
    {"UIWARP_SHAKE", "off|SEED[,only=NAME...][,without=NAME...]", "off",
     "Do by this seed, a number of 64 bits, what the standards leave open and programs do not "
     "expect: completions that come late, in other batches and orders, data whose end is placed "
     "first, late events, keys that come again. `uiwarp run --shake` sets it. only, without: "
     "which of that, by the names in doc/shake.md."},
    {"UIWARP_TRACE", "off|FILE[,size=N][,fpdus]", "off",
     "Record each work request, its completion and what happens to queue pairs in FILE, which "
     "`uiwarp trace` shows; %p in its name stands for the process id. `uiwarp run --trace` sets "
     "it. size: of the file, 64K..1G, 64M by default; the newest records stay. fpdus: each FPDU "
     "that is sent or received is recorded, too, for `uiwarp trace --pcap`."},
    {"UIWARP_RUNTIME_DIR", "auto|/DIRECTORY", "auto",
     "Where the files lie that programs see below /sys/class/infiniband and /dev/infiniband: a "
     "directory of the user's that nobody else may write to, or one of root's and sticky; if it "
     "cannot be used, that is said and auto is tried. auto: the first of XDG_RUNTIME_DIR, /dev/shm "
     "and /tmp that is like this."},
    {"UIWARP_LOG", "error|warn|info|debug", "warn",
     "Messages on standard error: up to this level. debug: what devices, queue pairs and "
     "connections do. With info and debug each line has time (UTC), process id and level."},
    {"UIWARP_LOG_FILE", "off|FILE", "off",
     "Messages are appended to FILE instead, each with time, process id and level; %p in its name "
     "stands for the process id."},
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
