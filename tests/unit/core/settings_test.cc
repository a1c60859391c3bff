// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Parsing of single variables. What a whole process makes of its environment:
// settings_process_test.cc.
#include "core/settings.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace uiw::core {
namespace {

bool accepted(const char* name, const char* text, Settings& out) {
  std::string problem;
  bool good = parse_setting(name, text, out, problem);
  EXPECT_EQ(good, problem.empty()) << problem;
  return good;
}

// The message names variable, value and what is allowed; the setting keeps its value.
void expect_refused(const char* name, const char* text, const char* allowed) {
  SCOPED_TRACE(testing::Message() << name << "='" << text << "'");
  Settings out;
  std::string problem;
  EXPECT_FALSE(parse_setting(name, text, out, problem));
  EXPECT_NE(problem.find(name), std::string::npos) << problem;
  EXPECT_NE(problem.find(std::string("'") + text + "'"), std::string::npos) << problem;
  EXPECT_NE(problem.find(allowed), std::string::npos) << problem;
  Settings untouched;
  EXPECT_EQ(out.crc, untouched.crc);
  EXPECT_EQ(out.mode, untouched.mode);
  EXPECT_EQ(out.engine, untouched.engine);
  EXPECT_EQ(out.engine_cpu, untouched.engine_cpu);
  EXPECT_EQ(out.mpa_revision, untouched.mpa_revision);
  EXPECT_EQ(out.mpa_fallback, untouched.mpa_fallback);
  EXPECT_EQ(out.mpa_markers, untouched.mpa_markers);
  EXPECT_EQ(out.peer_to_peer, untouched.peer_to_peer);
  EXPECT_EQ(out.mpa_rtr, untouched.mpa_rtr);
  EXPECT_EQ(out.connect_timeout_ms, untouched.connect_timeout_ms);
  EXPECT_EQ(out.reply_timeout_ms, untouched.reply_timeout_ms);
  EXPECT_EQ(out.request_timeout_ms, untouched.request_timeout_ms);
  EXPECT_EQ(out.close_timeout_ms, untouched.close_timeout_ms);
  EXPECT_EQ(out.rnr_wait_ms, untouched.rnr_wait_ms);
  EXPECT_EQ(out.log_level, untouched.log_level);
}

TEST(Settings, Crc) {
  Settings s;
  EXPECT_EQ(s.crc, CrcPolicy::kAuto);
  EXPECT_TRUE(accepted("UIWARP_CRC", "on", s));
  EXPECT_EQ(s.crc, CrcPolicy::kOn);
  EXPECT_TRUE(accepted("UIWARP_CRC", "off", s));
  EXPECT_EQ(s.crc, CrcPolicy::kOff);
  EXPECT_TRUE(accepted("UIWARP_CRC", "auto", s));
  EXPECT_EQ(s.crc, CrcPolicy::kAuto);
  for (const char* bad : {"", "1", "On", "on ", " on", "yes", "o", "onn"}) {
    expect_refused("UIWARP_CRC", bad, "auto|on|off");
  }
}

TEST(Settings, Mode) {
  Settings s;
  EXPECT_TRUE(accepted("UIWARP_MODE", "exclusive", s));
  EXPECT_EQ(s.mode, HostMode::kExclusive);
  EXPECT_TRUE(accepted("UIWARP_MODE", "auto", s));
  EXPECT_EQ(s.mode, HostMode::kAuto);
  for (const char* bad : {"", "merge", "AUTO"})
    expect_refused("UIWARP_MODE", bad, "auto|exclusive");
}

TEST(Settings, Engines) {
  Settings s;
  EXPECT_EQ(s.engines, 0u);
  for (uint32_t count : {1u, 2u, 64u}) {
    EXPECT_TRUE(accepted("UIWARP_ENGINES", std::to_string(count).c_str(), s));
    EXPECT_EQ(s.engines, count);
  }
  EXPECT_TRUE(accepted("UIWARP_ENGINES", "auto", s));
  EXPECT_EQ(s.engines, 0u);
  for (const char* bad : {"", "0", "65", "-1", "two", "2 ", "AUTO"})
    expect_refused("UIWARP_ENGINES", bad, "auto|1..64");
}

TEST(Settings, EngineCpu) {
  Settings s;
  EXPECT_TRUE(accepted("UIWARP_ENGINE", "epoll", s));
  EXPECT_EQ(s.engine, EngineKind::kEpoll);
  EXPECT_TRUE(accepted("UIWARP_ENGINE", "io_uring", s));
  EXPECT_EQ(s.engine, EngineKind::kIoUring);
  EXPECT_TRUE(accepted("UIWARP_ENGINE", "auto", s));
  EXPECT_EQ(s.engine, EngineKind::kAuto);
  expect_refused("UIWARP_ENGINE", "uring", "auto|io_uring|epoll");
  EXPECT_TRUE(accepted("UIWARP_ENGINE_CPU", "free", s));
  EXPECT_EQ(s.engine_cpu, EngineCpu::kFree);
  EXPECT_TRUE(accepted("UIWARP_ENGINE_CPU", "follow", s));
  EXPECT_EQ(s.engine_cpu, EngineCpu::kFollow);
  for (const char* bad : {"", "0", "3"}) expect_refused("UIWARP_ENGINE_CPU", bad, "follow|free");
}

TEST(Settings, MpaRevision) {
  Settings s;
  EXPECT_TRUE(accepted("UIWARP_MPA_REVISION", "1", s));
  EXPECT_EQ(s.mpa_revision, 1u);
  EXPECT_TRUE(accepted("UIWARP_MPA_REVISION", "2", s));
  EXPECT_EQ(s.mpa_revision, 2u);
  for (const char* bad : {"", "0", "3", "2.0", "02"})
    expect_refused("UIWARP_MPA_REVISION", bad, "1|2");
}

TEST(Settings, MpaRtr) {
  Settings s;
  EXPECT_EQ(s.mpa_rtr, RtrKind::kAny);
  EXPECT_TRUE(accepted("UIWARP_MPA_RTR", "read", s));
  EXPECT_EQ(s.mpa_rtr, RtrKind::kRead);
  EXPECT_TRUE(accepted("UIWARP_MPA_RTR", "write", s));
  EXPECT_EQ(s.mpa_rtr, RtrKind::kWrite);
  EXPECT_TRUE(accepted("UIWARP_MPA_RTR", "any", s));
  EXPECT_EQ(s.mpa_rtr, RtrKind::kAny);
  for (const char* bad : {"", "send", "READ", "both"})
    expect_refused("UIWARP_MPA_RTR", bad, "any|read|write");
}

TEST(Settings, Switches) {
  struct Row {
    const char* name;
    bool Settings::*member;
    bool fallback;
  };
  for (const Row& row : {Row{"UIWARP_MPA_FALLBACK", &Settings::mpa_fallback, true},
                         Row{"UIWARP_MPA_MARKERS", &Settings::mpa_markers, false},
                         Row{"UIWARP_PEER_TO_PEER", &Settings::peer_to_peer, true}}) {
    SCOPED_TRACE(row.name);
    Settings s;
    EXPECT_EQ(s.*row.member, row.fallback);
    EXPECT_TRUE(accepted(row.name, "off", s));
    EXPECT_FALSE(s.*row.member);
    EXPECT_TRUE(accepted(row.name, "on", s));
    EXPECT_TRUE(s.*row.member);
    for (const char* bad : {"", "auto", "0", "1", "true", "ON"})
      expect_refused(row.name, bad, "on|off");
  }
}

TEST(Settings, Milliseconds) {
  struct Row {
    const char* name;
    uint32_t Settings::*member;
    uint32_t least;
  };
  for (const Row& row : {Row{"UIWARP_CONNECT_TIMEOUT_MS", &Settings::connect_timeout_ms, 1},
                         Row{"UIWARP_REPLY_TIMEOUT_MS", &Settings::reply_timeout_ms, 1},
                         Row{"UIWARP_REQUEST_TIMEOUT_MS", &Settings::request_timeout_ms, 1},
                         Row{"UIWARP_CLOSE_TIMEOUT_MS", &Settings::close_timeout_ms, 1},
                         Row{"UIWARP_RNR_WAIT_MS", &Settings::rnr_wait_ms, 0}}) {
    SCOPED_TRACE(row.name);
    Settings s;
    for (uint32_t value : {row.least, 1u, 250u, 599999u, 600000u}) {
      EXPECT_TRUE(accepted(row.name, std::to_string(value).c_str(), s));
      EXPECT_EQ(s.*row.member, value);
    }
    const char* allowed = row.least == 0 ? "milliseconds 0..600000" : "milliseconds 1..600000";
    for (const char* bad : {"", "-1", "+5", "600001", "4294967297", "99999999999999999999", "10s",
                            "1.5", " 5", "5 ", "0x10", "five"}) {
      expect_refused(row.name, bad, allowed);
    }
    if (row.least == 1) expect_refused(row.name, "0", allowed);
  }
}

TEST(Settings, LogLevel) {
  Settings s;
  EXPECT_EQ(s.log_level, 1);
  const char* levels[] = {"error", "warn", "info", "debug"};
  for (int level = 0; level < 4; level++) {
    EXPECT_TRUE(accepted("UIWARP_LOG", levels[level], s));
    EXPECT_EQ(s.log_level, level);
  }
  for (const char* bad : {"", "2", "warning", "trace"})
    expect_refused("UIWARP_LOG", bad, "error|warn|info|debug");
}

TEST(Settings, UnknownName) {
  Settings s;
  std::string problem;
  EXPECT_FALSE(parse_setting("UIWARP_CRCC", "on", s, problem));
  EXPECT_NE(problem.find("UIWARP_CRCC"), std::string::npos);
}

// Each changes what its default text makes of a Settings that differs everywhere.
TEST(Settings, TableSaysTheDefaults) {
  Settings s{.crc = CrcPolicy::kOff,
             .mode = HostMode::kExclusive,
             .engine = EngineKind::kEpoll,
             .engines = 7,
             .engine_cpu = EngineCpu::kFree,
             .mpa_revision = 1,
             .mpa_fallback = false,
             .mpa_markers = true,
             .peer_to_peer = false,
             .mpa_rtr = RtrKind::kWrite,
             .wake_peer = false,
             .long_fpdus = false,
             .poll_progress = false,
             .first_port = 1,
             .last_port = 1,
             .connect_timeout_ms = 1,
             .reply_timeout_ms = 1,
             .request_timeout_ms = 1,
             .close_timeout_ms = 1,
             .rnr_wait_ms = 1,
             .log_level = 3,
             .log_file = "x"};
  std::set<std::string> names;
  for (const SettingInfo& info : setting_table()) {
    SCOPED_TRACE(info.name);
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_TRUE(accepted(info.name, info.fallback, s));
    EXPECT_NE(std::string(info.help), "");
    EXPECT_NE(std::string(info.type), "");
  }
  Settings defaults;
  EXPECT_EQ(s.crc, defaults.crc);
  EXPECT_EQ(s.mode, defaults.mode);
  EXPECT_EQ(s.engine, defaults.engine);
  EXPECT_EQ(s.engines, defaults.engines);
  EXPECT_EQ(s.engine_cpu, defaults.engine_cpu);
  EXPECT_EQ(s.mpa_revision, defaults.mpa_revision);
  EXPECT_EQ(s.mpa_fallback, defaults.mpa_fallback);
  EXPECT_EQ(s.mpa_markers, defaults.mpa_markers);
  EXPECT_EQ(s.peer_to_peer, defaults.peer_to_peer);
  EXPECT_EQ(s.mpa_rtr, defaults.mpa_rtr);
  EXPECT_EQ(s.wake_peer, defaults.wake_peer);
  EXPECT_EQ(s.long_fpdus, defaults.long_fpdus);
  EXPECT_EQ(s.poll_progress, defaults.poll_progress);
  EXPECT_EQ(s.first_port, defaults.first_port);
  EXPECT_EQ(s.last_port, defaults.last_port);
  EXPECT_EQ(s.connect_timeout_ms, defaults.connect_timeout_ms);
  EXPECT_EQ(s.reply_timeout_ms, defaults.reply_timeout_ms);
  EXPECT_EQ(s.request_timeout_ms, defaults.request_timeout_ms);
  EXPECT_EQ(s.close_timeout_ms, defaults.close_timeout_ms);
  EXPECT_EQ(s.rnr_wait_ms, defaults.rnr_wait_ms);
  EXPECT_EQ(s.log_level, defaults.log_level);
  EXPECT_STREQ(s.log_file, defaults.log_file);
}

TEST(Settings, Ports) {
  Settings s;
  EXPECT_EQ(s.first_port, 0);
  EXPECT_TRUE(accepted("UIWARP_PORTS", "18515-18530", s));
  EXPECT_EQ(s.first_port, 18515);
  EXPECT_EQ(s.last_port, 18530);
  EXPECT_TRUE(accepted("UIWARP_PORTS", "1024-65535", s));
  EXPECT_TRUE(accepted("UIWARP_PORTS", "5000-5000", s));
  EXPECT_TRUE(accepted("UIWARP_PORTS", "auto", s));
  EXPECT_EQ(s.first_port, 0);
  EXPECT_EQ(s.last_port, 0);
  for (const char* bad : {"", "5000", "5001-5000", "1023-2000", "0-0", "5000-65536", "5000-",
                          "-5000", "5000-6000x", "a-b", " 5000-6000"})
    expect_refused("UIWARP_PORTS", bad, "auto|FIRST-LAST");
  for (const char* bad : {"abc", "0", "70000", "5000-4000"})
    expect_refused("UIWARP_PORTS", bad, "from 1024 to 65535, the lower one first, as 18515-18530");
}

TEST(Settings, Devices) {
  Settings s;
  EXPECT_STREQ(s.devices, "");
  EXPECT_TRUE(accepted("UIWARP_DEVICES", "lo,!eth*", s));
  EXPECT_STREQ(s.devices, "lo,!eth*");
  const std::string longest(Settings::kLongestList, 'x');
  EXPECT_TRUE(accepted("UIWARP_DEVICES", longest.c_str(), s));
  EXPECT_EQ(s.devices, longest);
  EXPECT_TRUE(accepted("UIWARP_DEVICES", "all", s));
  EXPECT_STREQ(s.devices, "*");
  EXPECT_TRUE(accepted("UIWARP_DEVICES", "auto", s));
  EXPECT_STREQ(s.devices, "");
  for (const char* bad : {"", ",", "lo,,eth0", "lo eth0", "!"})
    expect_refused("UIWARP_DEVICES", bad, "auto|all|NAMES");
  expect_refused("UIWARP_DEVICES", (longest + "x").c_str(), "auto|all|NAMES");
}

TEST(Settings, RuntimeDirectory) {
  Settings s;
  EXPECT_STREQ(s.runtime_dir, "");
  EXPECT_TRUE(accepted("UIWARP_RUNTIME_DIR", "/run/user/7", s));
  EXPECT_STREQ(s.runtime_dir, "/run/user/7");
  EXPECT_TRUE(accepted("UIWARP_RUNTIME_DIR", "/tmp", s));
  EXPECT_STREQ(s.runtime_dir, "/tmp");
  const std::string longest = "/" + std::string(Settings::kLongestPath - 1, 'x');
  EXPECT_TRUE(accepted("UIWARP_RUNTIME_DIR", longest.c_str(), s));
  EXPECT_EQ(s.runtime_dir, longest);
  EXPECT_TRUE(accepted("UIWARP_RUNTIME_DIR", "auto", s));
  EXPECT_STREQ(s.runtime_dir, "");
  for (const char* bad : {"", "run", "./run", "~/run"})
    expect_refused("UIWARP_RUNTIME_DIR", bad, "auto|/DIRECTORY");
  expect_refused("UIWARP_RUNTIME_DIR", (longest + "x").c_str(), "auto|/DIRECTORY");
}

TEST(Settings, Check) {
  Settings s;
  EXPECT_STREQ(s.check, "off");
  for (const char* good : {"on", "exit=3", "exit=0,halt=1", "json=/tmp/x.json,hints=1,max=7",
                           "on,github=1", "off", "suppressions=a b"}) {
    EXPECT_TRUE(accepted("UIWARP_CHECK", good, s));
    EXPECT_STREQ(s.check, good);
  }
  for (const char* bad : {"", "yes", "on,", ",on", "on,off", "exit=", "exit=256", "exit=-1",
                          "halt=2", "json=", "json", "max=0", "hint=1"})
    expect_refused("UIWARP_CHECK", bad, "off|on|OPTION,...");
}

TEST(Settings, FaultsAreAFileOfRulesOrOff) {
  Settings s;
  EXPECT_STREQ(s.faults, "off");
  for (const char* good : {"/tmp/rules", "rules of mine", "off"}) {
    EXPECT_TRUE(accepted("UIWARP_FAULTS", good, s));
    EXPECT_STREQ(s.faults, good);
  }
  expect_refused("UIWARP_FAULTS", "", "off|none|FILE");
  expect_refused("UIWARP_FAULTS", std::string(Settings::kLongestPath + 1, 'x').c_str(),
                 "off|none|FILE");
}

TEST(Settings, ASeedIsANumberOf64BitsOrOff) {
  Settings s;
  EXPECT_STREQ(s.shake, "off");
  for (const char* good : {"0", "17", "18446744073709551615", "off"}) {
    EXPECT_TRUE(accepted("UIWARP_SHAKE", good, s));
    EXPECT_STREQ(s.shake, good);
  }
  for (const char* bad : {"", "-1", "1x", "0x1", " 1", "on", "18446744073709551616"})
    expect_refused("UIWARP_SHAKE", bad, "off|SEED");
}

TEST(Settings, ATraceIsAFileWithItsSizeOrOff) {
  Settings s;
  EXPECT_STREQ(s.trace, "off");
  for (const char* good :
       {"/tmp/x.trace", "x.%p", "x,size=64K", "x,size=1G", "x,fpdus,size=65536", "off"}) {
    EXPECT_TRUE(accepted("UIWARP_TRACE", good, s));
    EXPECT_STREQ(s.trace, good);
    EXPECT_EQ(s.trace_fpdus, std::string_view(good).find("fpdus") != std::string_view::npos);
  }
  for (const char* bad :
       {"", ",size=1M", "x,", "x,size=", "x,size=63K", "x,size=2G", "x,size=1KK", "x,size=-1",
        "x,size=1T", "x,size=1M,y", "x,fpdus=1", "x,size=18446744073709551616"})
    expect_refused("UIWARP_TRACE", bad, "off|FILE[,size=N][,fpdus]");
}

}  // namespace
}  // namespace uiw::core
