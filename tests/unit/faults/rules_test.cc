// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace uiw::faults {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Rules good(const char* text) {
  Rules rules;
  EXPECT_EQ(parse(text, rules), "");
  return rules;
}

std::string problem(const std::string& text) {
  Rules rules;
  return parse(text, rules);
}

TEST(FaultRules, EachFormIsReadWithItsValuesAndItsLine) {
  const Rules rules = good(
      "# what goes wrong\n"
      "seed 7\n"
      "\n"
      "qp=* op=WRITE nth=100 status=RETRY_EXC_ERR   # as with a pulled cable\n"
      "op=SEND every=1000 delay=5ms..20ms\n"
      "verb=create_cq nth=2 errno=ENOMEM\r\n"
      "\top=RECV status=IBV_WC_LOC_LEN_ERR probability=0.25\n"
      "op=READ delay=1s");
  EXPECT_EQ(rules.seed, 7u);
  ASSERT_EQ(rules.list.size(), 5u);
  EXPECT_EQ(rules.list[0].line, 4);
  EXPECT_EQ(rules.list[0].event, Event::kWrite);
  EXPECT_EQ(rules.list[0].when, When::kNth);
  EXPECT_EQ(rules.list[0].number, 100u);
  EXPECT_EQ(rules.list[0].action, Action::kStatus);
  EXPECT_EQ(rules.list[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(rules.list[1].when, When::kEvery);
  EXPECT_EQ(rules.list[1].action, Action::kDelay);
  EXPECT_EQ(rules.list[1].least, 5 * core::kMillisecond);
  EXPECT_EQ(rules.list[1].most, 20 * core::kMillisecond);
  EXPECT_EQ(rules.list[2].event, Event::kCreateCq);
  EXPECT_EQ(rules.list[2].action, Action::kErrno);
  EXPECT_EQ(rules.list[2].error, ENOMEM);
  EXPECT_EQ(rules.list[3].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(rules.list[3].when, When::kProbability);
  EXPECT_EQ(rules.list[3].probability, 0.25);
  EXPECT_EQ(rules.list[4].when, When::kAlways);
  EXPECT_EQ(rules.list[4].least, core::kSecond);
  EXPECT_EQ(rules.list[4].most, core::kSecond);
}

TEST(FaultRules, AWrongWordIsNamedWithItsLineAndWhatIsAllowed) {
  struct Wrong {
    const char* text;
    const char* word;
    const char* allowed;
  };
  constexpr Wrong kWrong[] = {
      {"op=WRIET nth=1 status=RETRY_EXC_ERR", "'op=WRIET'", "SEND, WRITE, READ, ATOMIC, RECV"},
      {"verb=creat_cq errno=ENOMEM", "'verb=creat_cq'", "create_cq, "},
      {"verb=destroy_cq errno=EBUSY", "'verb=destroy_cq'", "create_cq, "},
      {"verb=create_cq errno=12", "'errno=12'", "ENOMEM, EINVAL"},
      {"op=SEND status=SUCCESS", "'status=SUCCESS'", "LOC_LEN_ERR, "},
      {"op=RECV status=RETRY_EXC_ERR", "'status=RETRY_EXC_ERR'", "LOC_ACCESS_ERR"},
      {"op=SEND nth=0 status=FATAL_ERR", "'nth=0'", "from 1 on"},
      {"op=SEND nth=x status=FATAL_ERR", "'nth=x'", "from 1 on"},
      {"op=SEND every=-1 status=FATAL_ERR", "'every=-1'", "from 1 on"},
      {"op=SEND probability=0 delay=1ms", "'probability=0'", "above 0"},
      {"op=SEND probability=1.1 delay=1ms", "'probability=1.1'", "at most 1"},
      {"op=SEND probability=nan delay=1ms", "'probability=nan'", "at most 1"},
      {"op=SEND nth=1 every=2 delay=1ms", "'every=2'", "one of nth=N, every=N, probability=P"},
      {"op=SEND nth=1 nth=2 delay=1ms", "'nth=2'", "twice"},
      {"op=SEND delay=20ms..5ms", "'delay=20ms..5ms'", "MIN..MAX"},
      {"op=SEND delay=5", "'delay=5'", "us, ms or s"},
      {"op=SEND delay=61s", "'delay=61s'", "at most 60s"},
      {"op=SEND delay=0ms", "'delay=0ms'", "MIN..MAX"},
      {"op=SEND delay=1ms status=FATAL_ERR", "'status=FATAL_ERR'",
       "one of status=S, delay=MIN..MAX"},
      {"qp=3 op=SEND delay=1ms", "'qp=3'", "*"},
      {"op=SEND nth=1", "'op=SEND'", "status=S or delay=MIN..MAX"},
      {"verb=post_send nth=1", "'verb=post_send'", "errno=E"},
      {"verb=post_send status=FATAL_ERR", "'status=FATAL_ERR'", "errno=E"},
      {"op=SEND errno=EINVAL", "'errno=EINVAL'", "status=S, delay=MIN..MAX"},
      {"op=SEND verb=post_send errno=EINVAL", "'verb=post_send'",
       "about one of verb=NAME, op=NAME"},
      {"qp=* verb=post_send errno=EINVAL", "'qp=*'", "with verb=NAME a rule has nth=N"},
      {"nth=1 errno=EINVAL", "'nth=1'", "what it is about: verb=NAME, op=NAME, connect"},
      {"op", "'op'", "op=..."},
      {"sometimes op=SEND", "'sometimes'", "nth="},
      {"connect", "'connect'", "reject or timeout or unreachable or reset"},
      {"connect=1 reject", "'connect=1'", "has no value"},
      {"connect port=0 reject", "'port=0'", "from 1 to 65535"},
      {"connect port=65536 reject", "'port=65536'", "from 1 to 65535"},
      {"connect reset timeout", "'timeout'", "one of reject, timeout, unreachable, reset"},
      {"connect reset after=2kb", "'after=2kb'", "2KiB"},
      {"connect timeout after=2KiB", "'after=2KiB'", "goes with reset"},
      {"connect op=SEND delay=1ms", "'op=SEND'", "about one of"},
      {"op=SEND port=1 delay=1ms", "'port=1'", "with op=NAME a rule has nth=N"},
      {"dev=uiw_lo port=down", "'dev=uiw_lo'", "needs at=TIME"},
      {"dev=uiw_lo at=1s", "'dev=uiw_lo'", "port=down or event=NAME"},
      {"dev= at=1s port=down", "'dev='", "NAME or *"},
      {"dev=uiw_lo at=0s port=down", "'at=0s'", "TIME above 0"},
      {"dev=uiw_lo at=86401s port=down", "'at=86401s'", "at most 86400s"},
      {"dev=uiw_lo at=1s port=7174", "'port=7174'", "down"},
      {"dev=uiw_lo at=1s event=QP_FATAL", "'event=QP_FATAL'", "DEVICE_FATAL, PORT_ACTIVE"},
      {"dev=uiw_lo at=1s event=PORT_ERR for=1s", "'for=1s'", "goes with port=down"},
      {"dev=uiw_lo at=1s nth=1 port=down", "'nth=1'", "with dev=NAME a rule has"},
      {"gid=shift", "'gid=shift'", "needs at=TIME"},
      {"gid=swap at=1s", "'gid=swap'", "shift"},
      {"cq=7 overrun", "'cq=7'", "*, since"},
      {"cq=* nth=1", "'cq=*'", "overrun"},
      {"peer=10.0.0 delay=1ms", "'peer=10.0.0'", "as 10.0.0.2"},
      {"peer=10.0.0.2", "'peer=10.0.0.2'", "needs rate=BITS or delay=MIN..MAX"},
      {"peer=10.0.0.2 rate=1Gb", "'rate=1Gb'", "as 1Gbit"},
      {"peer=10.0.0.2 nth=1 delay=1ms", "'nth=1'", "with peer=ADDRESS a rule has rate=BITS"},
      {"seed", "'seed'", "seed N"},
      {"seed x", "'seed'", "seed N"},
  };
  for (const Wrong& wrong : kWrong) {
    const std::string said = problem(std::string("\n# here:\n") + wrong.text + "\n");
    EXPECT_THAT(said, StartsWith("line 3: ")) << wrong.text;
    EXPECT_THAT(said, HasSubstr(wrong.word)) << wrong.text;
    EXPECT_THAT(said, HasSubstr(wrong.allowed)) << wrong.text;
  }
  EXPECT_THAT(problem("seed 1\nseed 2\nop=SEND delay=1ms"), HasSubstr("line 2: 'seed' is there"));
}

TEST(FaultRules, AConnectionIsMetByItsPortAndEndsInOneOfFourWays) {
  const Rules rules = good(
      "connect port=7174 nth=1 reject\n"
      "connect timeout\n"
      "connect every=2 unreachable\n"
      "connect port=7174 reset after=2KiB\n"
      "connect reset");
  ASSERT_EQ(rules.list.size(), 5u);
  for (const Rule& rule : rules.list) EXPECT_EQ(rule.event, Event::kConnect);
  EXPECT_EQ(rules.list[0].port, 7174);
  EXPECT_EQ(rules.list[0].when, When::kNth);
  EXPECT_EQ(rules.list[0].action, Action::kReject);
  EXPECT_EQ(rules.list[1].port, 0);
  EXPECT_EQ(rules.list[1].action, Action::kTimeOut);
  EXPECT_EQ(rules.list[2].action, Action::kUnreachable);
  EXPECT_EQ(rules.list[3].action, Action::kReset);
  EXPECT_EQ(rules.list[3].bytes, 2048u);
  EXPECT_EQ(rules.list[4].bytes, 0u);
  EXPECT_EQ(good("connect reset after=3MiB").list[0].bytes, 3u << 20);
  EXPECT_EQ(good("connect reset after=100").list[0].bytes, 100u);
}

TEST(FaultRules, ATimeADeviceAndWhatHappensToItAreRead) {
  const Rules rules = good(
      "dev=uiw_eth0 at=3s port=down for=2s\n"
      "dev=* at=500ms event=IBV_EVENT_DEVICE_FATAL\n"
      "gid=shift at=2s\n"
      "dev=uiw_lo at=86400s port=down");
  ASSERT_EQ(rules.list.size(), 4u);
  for (const Rule& rule : rules.list) EXPECT_EQ(rule.event, Event::kTime);
  EXPECT_EQ(rules.list[0].device, "uiw_eth0");
  EXPECT_EQ(rules.list[0].action, Action::kPortDown);
  EXPECT_EQ(rules.list[0].at, 3 * core::kSecond);
  EXPECT_EQ(rules.list[0].lasts, 2 * core::kSecond);
  EXPECT_EQ(rules.list[1].action, Action::kAsync);
  EXPECT_EQ(rules.list[1].async, IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(rules.list[2].action, Action::kShiftGids);
  EXPECT_EQ(rules.list[2].device, "*");
  EXPECT_EQ(rules.list[3].lasts, 0);
}

TEST(FaultRules, ACompletionAndAPeerAreRead) {
  const Rules rules = good(
      "cq=* nth=5 overrun\n"
      "peer=10.0.0.2 rate=1Gbit delay=10ms\n"
      "peer=fd00::2 delay=1ms..2ms\n"
      "peer=10.0.0.3 rate=64Kbit");
  ASSERT_EQ(rules.list.size(), 4u);
  EXPECT_EQ(rules.list[0].event, Event::kCompletion);
  EXPECT_EQ(rules.list[0].action, Action::kOverrun);
  EXPECT_EQ(rules.list[0].number, 5u);
  EXPECT_EQ(rules.list[1].action, Action::kPace);
  EXPECT_EQ(rules.list[1].rate, 1000000000u);
  EXPECT_EQ(rules.list[1].least, 10 * core::kMillisecond);
  EXPECT_EQ(rules.list[2].most, 2 * core::kMillisecond);
  EXPECT_EQ(rules.list[3].rate, 64000u);
  Occasion sent{.event = Event::kDeparture, .peer = rules.list[1].peer};
  EXPECT_TRUE(rules.list[1].is_for(sent));
  EXPECT_TRUE(good("peer=* delay=1ms").list[0].is_for(sent));
  EXPECT_FALSE(rules.list[2].is_for(sent));
}

TEST(FaultRules, DatagramsHaveActionsOfTheirOwn) {
  EXPECT_EQ(good("op=UD_SEND drop").list[0].action, Action::kDrop);
  EXPECT_EQ(good("op=UD_RECV nth=2 duplicate").list[0].action, Action::kDuplicate);
  EXPECT_EQ(good("op=UD_RECV every=3 reorder").list[0].action, Action::kReorder);
  const Rule late = good("op=UD_RECV nth=3 delay=5ms..20ms").list[0];
  EXPECT_EQ(late.action, Action::kDelay);
  EXPECT_EQ(late.least, 5 * core::kMillisecond);
  EXPECT_EQ(late.most, 20 * core::kMillisecond);
  EXPECT_EQ(problem("op=UD_SEND nth=2 delay=5ms"),
            "line 1: 'delay=5ms': allowed for op=UD_SEND: drop, status=S");
  EXPECT_EQ(good("op=UD_SEND nth=2 status=LOC_PROT_ERR").list[0].status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(problem("op=UD_SEND status=RETRY_EXC_ERR"),
            "line 1: 'status=RETRY_EXC_ERR': allowed for op=UD_SEND: LOC_LEN_ERR, LOC_QP_OP_ERR, "
            "LOC_PROT_ERR, FATAL_ERR, GENERAL_ERR");
  EXPECT_EQ(problem("op=UD_RECV delay=5"),
            "line 1: 'delay=5': allowed for delay: TIME or MIN..MAX above 0, as 5ms..20ms, with "
            "us, ms or s, at most 60s");
  EXPECT_EQ(problem("op=UD_SEND reorder"),
            "line 1: 'reorder': allowed for op=UD_SEND: drop, status=S");
  EXPECT_EQ(problem("op=UD_RECV status=FATAL_ERR"),
            "line 1: 'status=FATAL_ERR': allowed for op=UD_RECV: drop, duplicate, reorder, "
            "delay=MIN..MAX");
  EXPECT_EQ(problem("op=SEND drop"),
            "line 1: 'drop': allowed for op=SEND: status=S, delay=MIN..MAX");
}

TEST(FaultRules, RequestedConnectionsAreOfThePortOfThisEnd) {
  const Rule rule = good("accept port=7174 nth=2 reset after=2KiB").list[0];
  EXPECT_EQ(rule.action, Action::kReset);
  EXPECT_EQ(rule.bytes, 2048u);
  EXPECT_TRUE(rule.is_for({.event = Event::kAccept, .port = 7174}));
  EXPECT_FALSE(rule.is_for({.event = Event::kConnect, .port = 7174}));
  EXPECT_THAT(problem("accept unreachable"), HasSubstr("with accept a rule has nth=N"));
}

TEST(FaultRules, AFileWithoutARuleIsAMistake) {
  EXPECT_THAT(problem("# nothing\nseed 3\n"), HasSubstr("no rule"));
  EXPECT_THAT(problem(""), HasSubstr("no rule"));
}

TEST(FaultRules, AFileThatCannotBeReadIsNamed) {
  Rules rules;
  EXPECT_EQ(load("/nonexistent/faults", rules), "/nonexistent/faults: No such file or directory");
  EXPECT_EQ(load("/", rules), "/: it is no regular file");
  const std::string fifo = testing::TempDir() + "uiwarp-faults-fifo-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(load(fifo, rules), fifo + ": it is no regular file");  // and does not wait
  unlink(fifo.c_str());
}

TEST(FaultRules, ARuleIsExplainedInWords) {
  const auto words = [](const char* rule) { return explain(good(rule).list.front()); };
  EXPECT_EQ(words("accept port=7174 nth=1 timeout"),
            "line 1: the 1st connection that is requested at port 7174 of the process is not "
            "answered, and the program does not get the request: the peer gets "
            "RDMA_CM_EVENT_UNREACHABLE when its UIWARP_REPLY_TIMEOUT_MS have passed.");
  EXPECT_EQ(words("op=UD_RECV every=3 reorder"),
            "line 1: each 3rd incoming datagram of each queue pair comes behind the next one, "
            "or never when there is none.");
  EXPECT_EQ(words("op=UD_RECV nth=3 delay=5ms..20ms"),
            "line 1: the 3rd incoming datagram of each queue pair comes 5 ms to 20 ms late, and "
            "those that come meanwhile overtake it.");
  EXPECT_EQ(words("op=UD_SEND nth=2 status=LOC_PROT_ERR"),
            "line 1: the 2nd outgoing datagram of each queue pair is not sent, and completes with "
            "IBV_WC_LOC_PROT_ERR; the queue pair goes to ERR, and the rest flushes.");
  EXPECT_EQ(words("verb=create_cq nth=2 errno=ENOMEM"),
            "line 1: the 2nd ibv_create_cq() of the process returns NULL, with errno ENOMEM, and "
            "nothing is made.");
  EXPECT_EQ(
      words("verb=modify_qp nth=11 errno=EINVAL"),
      "line 1: the 11th ibv_modify_qp() of each queue pair returns EINVAL, and does nothing.");
  EXPECT_EQ(words("verb=poll_cq nth=21 errno=EIO"),
            "line 1: the 21st ibv_poll_cq() of each completion queue fails with a negative result, "
            "for EIO, and does nothing.");
  EXPECT_EQ(words("op=WRITE every=3 status=RETRY_EXC_ERR"),
            "line 1: each 3rd RDMA Write of each queue pair is not carried out: behind the "
            "requests before it, it completes with IBV_WC_RETRY_EXC_ERR; the queue pair goes to "
            "ERR, the rest flushes, and its connection ends.");
  EXPECT_THAT(words("op=RECV status=LOC_LEN_ERR"),
              StartsWith("line 1: each receive of each queue pair completes with "
                         "IBV_WC_LOC_LEN_ERR when its message has come;"));
  EXPECT_THAT(words("op=SEND probability=0.01 delay=500us..2s"),
              StartsWith("line 1: with probability 0.01 each Send of each queue pair has its "
                         "completion handed out 500 us to 2 s late;"));
  EXPECT_EQ(words("connect port=7174 nth=1 reject"),
            "line 1: the 1st connection to port 7174 of the process is rejected by the peer: "
            "RDMA_CM_EVENT_REJECTED.");
  EXPECT_EQ(words("dev=uiw_lo at=3s port=down for=2s"),
            "line 1: 3 s after the process has opened its first device, or these rules were put in "
            "force later, the port of uiw_lo goes "
            "down for 2 s: IBV_EVENT_PORT_ERR, then IBV_EVENT_PORT_ACTIVE; what is posted "
            "meanwhile waits until its time-outs are over, and nothing of the peer comes.");
  EXPECT_EQ(words("peer=10.0.0.2 rate=1Gbit delay=10ms"),
            "line 1: what is posted to be sent to 10.0.0.2 leaves at 1 Gbit/s, of all "
            "queue pairs together, and 10 ms later, in its order.");
  EXPECT_THAT(words("cq=* nth=5 overrun"),
              StartsWith("line 1: the 5th completion of each completion queue is lost,"));
  EXPECT_THAT(words("gid=shift at=2s"), HasSubstr("the GIDs of each device move one index up"));
  EXPECT_THAT(words("connect timeout"), HasSubstr("its first request completes with"));
  EXPECT_THAT(words("connect reset after=2KiB"),
              StartsWith("line 1: each connection of the process is reset before the request with "
                         "which more than 2 KiB of requests would be posted to it:"));
}

}  // namespace
}  // namespace uiw::faults
