// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/forms.h"

#define JSON_NOEXCEPTION 1
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace uiw::check {
namespace {

using nlohmann::json;

Frame source(const char* function, const char* file, int line) {
  return {.function = function, .file = file, .line = line, .module = "/bin/program", .offset = 16};
}

struct Forms : testing::Test {
  Finding finding{.kind = Kind::kReceiveTooShort,
                  .object = "queue pair 0x12",
                  .wr_id = 7,
                  .what = "a message came that is longer",
                  .places = {{"posted", {}}, {"queue pair created", {}}}};
  Frames frames{{source("ibv_post_recv", "/usr/include/infiniband/verbs.h", 3351),
                 source("serve", "src/server.c", 120)},
                {{.function = "start", .file = {}, .module = "/lib/libother.so", .offset = 0x20},
                 {.function = {}, .file = {}, .module = {}, .offset = 0x7f00}}};
};

TEST_F(Forms, TextSaysWhatWhichWhereAndWhatToDo) {
  EXPECT_EQ(as_text(finding, frames, 42),
            "==42== uiwarp check: receive-too-short: a message longer than its receive\n"
            "    queue pair 0x12, wr_id 0x7: a message came that is longer.\n"
            "    posted at\n"
            "        ibv_post_recv  /usr/include/infiniband/verbs.h:3351\n"
            "        serve  src/server.c:120\n"
            "    queue pair created at\n"
            "        start  /lib/libother.so+0x20\n"
            "        ?  0x7f00\n"
            "    On adapters: The receive ends with IBV_WC_LOC_LEN_ERR, the send with "
            "IBV_WC_REM_INV_REQ_ERR, and\n"
            "    both queue pairs go to the error state. The sender of a datagram gets no error, "
            "and some\n"
            "    adapters drop the datagram without a completion.\n"
            "    What to do: Post receives that are as long as the longest message that the peer "
            "may send (on UD\n"
            "    queue pairs 40 bytes longer, for the GRH), and limit what the peer sends.\n");
}

TEST_F(Forms, TextSaysThatAHintIsOne) {
  finding.hint = true;
  finding.wr_id.reset();
  const std::string text = as_text(finding, frames, 42);
  EXPECT_NE(text.find("uiwarp check: hint: receive-too-short: "), text.npos) << text;
  EXPECT_NE(text.find("    queue pair 0x12: a message"), text.npos) << text;
}

TEST_F(Forms, SayThatAStackWasNotKept) {
  finding.places[1].stack = Stack::lost();
  frames[1].clear();
  const std::string text = as_text(finding, frames, 42);
  EXPECT_NE(text.find("queue pair created at\n        (not kept: "), text.npos) << text;
  EXPECT_EQ(text.find("(no stack)"), text.npos) << text;
  const json read = json::parse(as_json(finding, frames, 42));
  EXPECT_EQ(read["places"][1],
            json({{"label", "queue pair created"}, {"frames", json::array()}, {"lost", true}}));
  EXPECT_FALSE(read["places"][0].contains("lost"));
}

TEST_F(Forms, NoLineOfTextIsLongerThanATerminal) {
  for (const KindInfo& kind : kinds()) {
    finding.kind = kind.kind;
    std::string text = as_text(finding, frames, 42);
    for (size_t end; (end = text.find('\n')) != text.npos; text.erase(0, end + 1))
      EXPECT_LE(end, 100u) << text;
  }
}

TEST_F(Forms, JsonIsOneLineWithAllOfIt) {
  const std::string line = as_json(finding, frames, 42);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const json read = json::parse(line, nullptr, false);
  ASSERT_FALSE(read.is_discarded());
  EXPECT_EQ(read["pid"], 42);
  EXPECT_EQ(read["kind"], "receive-too-short");
  EXPECT_EQ(read["hint"], false);
  EXPECT_EQ(read["object"], "queue pair 0x12");
  EXPECT_EQ(read["wr_id"], 7);
  EXPECT_EQ(read["what"], "a message came that is longer");
  EXPECT_EQ(read["places"][0]["label"], "posted");
  EXPECT_EQ(read["places"][0]["frames"][1], json({{"module", "/bin/program"},
                                                  {"offset", 16},
                                                  {"function", "serve"},
                                                  {"file", "src/server.c"},
                                                  {"line", 120}}));
  EXPECT_EQ(read["places"][1]["frames"][1], json({{"module", ""}, {"offset", 0x7f00}}));
}

TEST_F(Forms, JsonTakesNamesThatAreNoUtf8) {
  frames[0][0].function = "\xff\"\\";
  EXPECT_FALSE(json::parse(as_json(finding, frames, 1), nullptr, false).is_discarded());
}

TEST_F(Forms, GithubPointsToTheProgramsOwnLine) {
  const std::string line = as_github(finding, frames);
  EXPECT_EQ(line.find("::error file=src/server.c,line=120,title=uiwarp receive-too-short::queue "
                      "pair 0x12, wr_id 0x7: a message came that is longer. Post"),
            0u)
      << line;
}

TEST_F(Forms, GithubEscapesWhatWouldEndAValue) {
  frames = {{source("f", "a,b:100%.c", 3)}, {}};
  finding.what = "50%\nof";
  finding.hint = true;
  const std::string line = as_github(finding, frames);
  EXPECT_EQ(line.find("::notice file=a%2Cb%3A100%25.c,line=3,title="), 0u) << line;
  EXPECT_NE(line.find("50%25%0Aof"), line.npos) << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(Summary, CountsWhatWasAndWasNotShown) {
  EXPECT_EQ(summary_text({.shown = 1}, 5), "==5== uiwarp check: 1 finding\n");
  EXPECT_EQ(summary_text({.shown = 7, .hints = 6}, 5), "==5== uiwarp check: 1 finding, 6 hints\n");
  EXPECT_EQ(summary_text({.shown = 1, .hints = 1}, 5), "==5== uiwarp check: 0 findings, 1 hint\n");
  EXPECT_EQ(summary_text({.shown = 2, .repeated = 9, .beyond_max = 3, .suppressed = 4}, 5),
            "==5== uiwarp check: 5 findings, 3 of them not shown (max=), 9 repeated, 4 "
            "suppressed\n");
  EXPECT_EQ(
      json::parse(summary_json({.shown = 2, .beyond_max = 3, .suppressed = 4}, 5))["findings"], 5);
  const json hints = json::parse(summary_json({.shown = 2, .hints = 3, .beyond_max = 3}, 5));
  EXPECT_EQ(hints["findings"], 2);
  EXPECT_EQ(hints["hints"], 3);
}

}  // namespace
}  // namespace uiw::check
