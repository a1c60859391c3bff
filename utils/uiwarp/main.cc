// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The `uiwarp` command.
#include <errno.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accepted.h"
#include "build_config.h"
#include "devices.h"
#include "doctor.h"
#include "environment.h"
#include "explain.h"
#include "faults.h"
#include "layout.h"
#include "live_faults.h"
#include "netns_pair.h"
#include "run.h"
#include "settings_page.h"
#include "shake.h"
#include "stat.h"
#include "system_wide.h"
#include "trace.h"

namespace {

constexpr char kRunHelp[] =
    "Usage: uiwarp run [--as iwarp|roce] [--check[=OPTION,...]] [--faults FILE] "
    "[--shake SEED[,OPTION,...]] [--trace FILE] "
    "[--] PROGRAM ARGS...\n\n"
    "Runs PROGRAM with the uiwarp devices visible to libibverbs and librdmacm: sets LD_PRELOAD "
    "and\n"
    "IBV_DRIVERS (keeping what is already in them), then replaces itself by PROGRAM.\n"
    "--as: the kind of adapter (face) that the program sees; overrides UIWARP_FACE (`uiwarp "
    "settings`).\n"
    "--check: report misuse of the verbs; the exit status is then 66. The OPTIONs are those of\n"
    "  UIWARP_CHECK.\n"
    "--faults: inject the faults that the rules of FILE describe. FILE is a path, the name of\n"
    "  ready-made rules, or 'none' to start without rules. `uiwarp faults` explains, lists and\n"
    "  changes rules. Sets UIWARP_FAULTS.\n"
    "--shake: vary by this seed what the standards leave open, in ways that programs do not "
    "expect.\n"
    "  OPTION: only=NAME or without=NAME, to select the variations. Sets UIWARP_SHAKE.\n"
    "--trace: record in FILE what happens to each work request; `uiwarp trace` shows it. Sets\n"
    "  UIWARP_TRACE.\n"
    "Exit status: the program's own; 127 if it is not found, 126 if it cannot be executed, 125 "
    "if\n"
    "parts of uiwarp are missing.\n";

// Options of run that need a value, in the next word or behind '='.
struct Choice {
  const char *option, *value;
  bool (*choose)(const std::string& value, std::string& problem);
};
constexpr Choice kChoices[] = {{"--as", "iwarp|roce", uiw::tool::choose_face},
                               {"--faults", "FILE", uiw::tool::choose_faults},
                               {"--shake", "SEED[,OPTION]", uiw::tool::choose_shake},
                               {"--trace", "FILE", uiw::tool::choose_trace}};

// Everything from PROGRAM on belongs to it, so no option parser may look at that.
int run_command(int argc, char** argv) {
  const std::string check = "--check", check_equals = "--check=";
  int first = 2;
  for (; first < argc && argv[first][0] == '-'; first++) {
    const std::string option = argv[first];
    if (option == "-h" || option == "--help") {
      fputs(kRunHelp, stdout);
      return 0;
    }
    if (option == "--") {
      first++;
      break;
    }
    std::string problem;
    bool good;
    const size_t equals = option.find('=');
    const auto choice =
        std::ranges::find(kChoices, option.substr(0, equals),
                          [](const Choice& one) { return std::string_view(one.option); });
    if (choice != std::end(kChoices) && equals != option.npos) {
      good = choice->choose(option.substr(equals + 1), problem);
    } else if (choice != std::end(kChoices)) {
      good = ++first < argc && choice->choose(argv[first], problem);
      if (first >= argc)
        problem = option + " needs a value, " + choice->value + ". `uiwarp run --help` says more.";
    } else if (option == check) {
      const std::string next = first + 1 < argc ? argv[first + 1] : "";
      good =
          !uiw::tool::is_taken_for_program(next, problem) && uiw::tool::choose_check("on", problem);
    } else if (option.starts_with(check_equals)) {
      good = uiw::tool::choose_check(option.substr(check_equals.size()), problem);
    } else {
      fprintf(stderr, "uiwarp: unknown option '%s' of run.\n%s", argv[first], kRunHelp);
      return 2;
    }
    if (!good) {
      fprintf(stderr, "uiwarp: %s\n", problem.c_str());
      return 2;
    }
  }
  if (first >= argc) {
    fprintf(stderr, "uiwarp: which program?\n%s", kRunHelp);
    return 2;
  }
  return uiw::tool::run_program(uiw::tool::find_layout(), argv + first);
}

constexpr char kBothPrograms[] = "-- SERVER ARGS... -- CLIENT ARGS...";

// The usage of a command behind whose options programs are named, which CLI11 knows nothing of.
class UsageWith : public CLI::Formatter {
 public:
  explicit UsageWith(std::string programs) : programs_(std::move(programs)) {}
  std::string make_usage(const CLI::App*, std::string name) const override {
    return get_label("Usage") + ": " + name + " [" + get_label("OPTIONS") + "] " + programs_ + "\n";
  }

 private:
  const std::string programs_;
};

// What stands behind the first "--", up to a second one, and behind that.
struct Commands {
  std::vector<std::string> server, client;
  int words_before;  // of argv
};

Commands split(int argc, char** argv) {
  const auto is_divider = [](const char* word) { return strcmp(word, "--") == 0; };
  char** const end = argv + argc;
  char** const first = std::find_if(argv, end, is_divider);
  Commands commands{{}, {}, static_cast<int>(first - argv)};
  if (first == end) return commands;
  char** const second = std::find_if(first + 1, end, is_divider);
  commands.server.assign(first + 1, second);
  if (second != end) commands.client.assign(second + 1, end);
  return commands;
}

bool is_command(const CLI::App& app, const char* word) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(),
                     [&](const CLI::App* command) { return command->get_name() == word; });
}

// The first word that looks like an option among those that a command has no use for; empty when
// there is none.
std::string unknown_option(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands())
    for (const std::string& word : command->remaining())
      if (word.size() > 1 && word[0] == '-' && word != "--") return word;
  return {};
}

// CLI11 does not say what an option needs that stands without its value.
std::string said(const CLI::App& command, const CLI::ParseError& error) {
  const std::string what = error.what();
  const CLI::Option* const option = command.get_option_no_throw(what.substr(0, what.find(':')));
  const bool is_bare = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch);
  if (!is_bare || !option) return what;
  return option->get_name() + " needs a value, " + option->get_type_name();
}

// CLI11 has a status for each kind of wrong use, and does not name a word that is no command.
int refuse(const CLI::App& app, const CLI::ParseError& error, const char* first) {
  const bool is_wrong = error.get_exit_code() != 0 && first;
  if (is_wrong && first[0] == '-') {
    fprintf(stderr, "uiwarp: '%s' is not an option of uiwarp; `uiwarp --help` lists them.\n",
            first);
    return 2;
  }
  if (is_wrong && !is_command(app, first)) {
    fprintf(stderr,
            "uiwarp: '%s' is not a command of uiwarp. `uiwarp --help` lists them; `uiwarp run %s` "
            "runs a program.\n",
            first, first);
    return 2;
  }
  if (const std::string option = is_wrong ? unknown_option(app) : ""; !option.empty()) {
    fprintf(stderr, "uiwarp: '%s' is not an option of %s; `uiwarp %s --help` lists them.\n",
            option.c_str(), first, first);
    return 2;
  }
  if (is_wrong && strcmp(first, "netns-pair") == 0 &&
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    fprintf(stderr, "uiwarp: write -- before each program: uiwarp netns-pair %s\n", kBothPrograms);
    return 2;
  }
  if (error.get_exit_code() == 0) return app.exit(error);
  if (!first)
    fputs("uiwarp: which command? `uiwarp --help` lists them.\n", stderr);
  else
    fprintf(stderr, "uiwarp: %s: %s. `uiwarp %s --help` says more.\n", first,
            said(*app.get_subcommand(first), error).c_str(), first);
  return 2;
}

int command(int argc, char** argv) {
  if (argc >= 2 && strcmp(argv[1], "run") == 0) return run_command(argc, argv);

  CLI::App app{"RDMA for any Linux process: iWARP over TCP in user space."};
  app.set_version_flag("--version", "uiwarp " UIWARP_VERSION);
  app.require_subcommand(1);
  app.add_subcommand("run", "Run a program with the device visible: uiwarp run PROGRAM ARGS...");
  CLI::App* devices =
      app.add_subcommand("devices", "List the devices that a program sees under `uiwarp run`");
  CLI::App* doctor =
      app.add_subcommand("doctor", "Check this machine and say what to do about each problem");
  CLI::App* enable =
      app.add_subcommand("enable",
                         "Make the devices visible to every program on this system, through "
                         "/etc/ld.so.preload");
  bool force = false;
  enable->add_flag("--force", force, "Even if no device is visible now");
  CLI::App* disable = app.add_subcommand("disable", "Undo `uiwarp enable`");
  CLI::App* settings =
      app.add_subcommand("settings", "List every UIWARP_* setting, its values and default");
  CLI::App* explain = app.add_subcommand(
      "explain",
      "Say what a completion status, errno, event or vendor_err means, and what to look at");
  CLI::App* faults = app.add_subcommand(
      "faults",
      "Show or change the fault rules of running programs, explain rules, or list the ready-made "
      "ones");
  std::string rules, new_rules;
  pid_t faulty = 0;
  bool faults_page = false, faults_list = false, faults_json = false, faults_off = false;
  CLI::Option* const faulty_option =
      faults->add_option("pid", faulty, "The process; without it, all of your processes")
          ->check(uiw::tool::between(1, 1 << 22))
          ->type_name("PID");
  CLI::Option* const new_rules_option =
      faults
          ->add_option("file", new_rules,
                       "Replace the rules of that process by those of this file, or ready-made "
                       "file")
          ->check(uiw::tool::not_empty())
          ->type_name("FILE");
  faults->add_flag("--off", faults_off, "Remove all rules from that process")
      ->needs(faulty_option)
      ->excludes(new_rules_option);
  CLI::Option* const faults_json_option = faults->add_flag("--json", faults_json, "As JSON");
  faults
      ->add_option("--explain", rules, "Say what each rule of this file, or ready-made file, does")
      ->check(uiw::tool::not_empty())
      ->type_name("FILE")
      ->excludes(faulty_option, faults_json_option);
  faults->add_flag("--list", faults_list, "List the names of the ready-made files")
      ->excludes(faulty_option, faults_json_option)
      ->excludes("--explain");
  faults
      ->add_flag("--markdown", faults_page,
                 "Print the tables of doc/faults.md, which list the "
                 "words of rules")
      ->excludes(faulty_option, faults_json_option)
      ->excludes("--explain", "--list");
  CLI::App* shake = app.add_subcommand(
      "shake", "Run a command under one shake seed after another until a run fails");
  shake->formatter(std::make_shared<UsageWith>("-- COMMAND ARGS..."));
  uiw::tool::ShakePlan plan;
  std::vector<std::string> command;
  shake->add_option("--runs", plan.runs, "How many seeds to try")
      ->capture_default_str()
      ->check(uiw::tool::between(uint64_t{1}, uint64_t{1'000'000'000}));
  shake->add_option("--from", plan.first_seed, "The first seed")
      ->capture_default_str()
      ->check(uiw::tool::between(uint64_t{0}, uint64_t{1} << 63));
  shake
      ->add_option("--timeout", plan.timeout,
                   "Seconds after which a run that has not ended "
                   "counts as hung")
      ->capture_default_str()
      ->check(uiw::tool::between(0.001, 1e6));
  shake->add_flag("--why", plan.why,
                  "Then find out which liberty (doc/shake.md) makes that run "
                  "fail");
  shake->add_option("command", command, "After --: the command and its arguments")
      ->required()
      ->type_name("");
  CLI::App* netns_pair = app.add_subcommand(
      "netns-pair", "Run two programs in two network namespaces, as on two hosts, without root");
  uiw::tool::PairPlan pair;
  netns_pair->formatter(std::make_shared<UsageWith>(kBothPrograms));
  netns_pair->footer(
      "In an argument, {server} and {client} stand for the address of that host. The client is "
      "started\nas soon as the server listens on a TCP port.");
  netns_pair
      ->add_option("--port", pair.port,
                   "The TCP port on which the server listens; without "
                   "this option: any")
      ->check(uiw::tool::between(1, 65535));
  netns_pair
      ->add_option("--wait", pair.wait,
                   "Seconds after which the client is started even if the server does not listen")
      ->capture_default_str()
      ->check(uiw::tool::between(0.0, 3600.0));
  netns_pair
      ->add_option("--grace", pair.grace,
                   "Seconds that the other program has to end after the client has ended or the "
                   "server has failed")
      ->capture_default_str()
      ->check(uiw::tool::between(0.0, 3600.0));
  for (const Choice& choice : kChoices)
    netns_pair
        ->add_option_function<std::string>(
            choice.option,
            [&choice](const std::string& value) {
              std::string problem;
              if (!choice.choose(value, problem)) throw CLI::ValidationError(problem);
            },
            "As for `uiwarp run`, applied to both programs")
        ->type_name(choice.value);
  std::string pair_check;
  const CLI::Option* const check_option =
      netns_pair->add_flag("--check", pair_check, "The same; with options: --check=OPTION,...");
  netns_pair->add_option("--mtu", pair.mtu, "MTU between the hosts, in bytes")
      ->capture_default_str()
      ->check(uiw::tool::between(1280, 65535));
  CLI::App* trace =
      app.add_subcommand("trace", "Show what happened to the work requests of traced programs");
  std::vector<std::string> traces;
  bool trace_json = false;
  std::string perfetto, pcap, html;
  trace->add_option("file", traces, "A recorded trace")
      ->required()
      ->check(uiw::tool::not_empty())
      ->type_name("FILE");
  trace->add_flag("--json", trace_json, "As JSON");
  trace
      ->add_option("--perfetto", perfetto,
                   "Write a timeline to this file, as JSON that "
                   "ui.perfetto.dev opens")
      ->check(uiw::tool::not_empty())
      ->type_name("FILE")
      ->excludes("--json");
  trace
      ->add_option("--pcap", pcap,
                   "Write the FPDUs to this file, as a capture that Wireshark "
                   "opens")
      ->check(uiw::tool::not_empty())
      ->type_name("FILE")
      ->excludes("--json", "--perfetto");
  trace->add_option("--html", html, "Write a page with charts to this file, for a browser")
      ->check(uiw::tool::not_empty())
      ->type_name("FILE")
      ->excludes("--json", "--perfetto", "--pcap");
  CLI::App* stat = app.add_subcommand(
      "stat", "Show what running programs have posted, completed, sent and received");
  pid_t pid = 0;
  double every = 0;
  bool stat_json = false, prometheus = false;
  stat->add_option("pid", pid, "Only this process")
      ->check(uiw::tool::between(1, 1 << 22))
      ->type_name("PID");
  stat->add_flag("--json", stat_json, "As JSON");
  stat->add_flag("--prometheus", prometheus, "In the text format of Prometheus")
      ->excludes("--json");
  stat->add_option("--watch", every,
                   "Repeat at this interval in seconds, with rates per second, "
                   "until Ctrl-C")
      ->check(uiw::tool::between(0.1, 3600.0))
      ->excludes("--json")
      ->excludes("--prometheus");
  bool markdown = false, as_json = false, errors_page = false;
  std::vector<std::string> words;
  explain->add_option(
      "word", words,
      "A name, a number or a text: IBV_WC_LOC_PROT_ERR, 4, 'local protection error', EINVAL "
      "ibv_post_send, REJECTED -111, 0x10102. Without a word, all are listed");
  explain->add_flag("--json", as_json, "As JSON");
  explain->add_flag("--markdown", errors_page, "As doc/errors.md");
  bool devices_json = false, doctor_json = false;
  devices->add_flag("--json", devices_json, "As JSON");
  doctor->add_flag("--json", doctor_json, "As JSON");
  settings->add_flag("--markdown", markdown, "As doc/settings.md");
  // Whatever stands behind '=' would be lost, or be a number of times.
  for (CLI::App* one : app.get_subcommands(nullptr))
    for (CLI::Option* option : one->get_options())
      if (option->get_expected_max() == 0 && option != check_option)
        option->check(uiw::tool::no_value());
  const bool is_pair = argc >= 2 && netns_pair->get_name() == argv[1];
  const Commands commands = is_pair ? split(argc, argv) : Commands{{}, {}, argc};
  try {
    app.parse(commands.words_before, argv);
  } catch (const CLI::ParseError& error) {
    return refuse(app, error, argv[1]);
  }

  if (devices->parsed())
    return uiw::tool::devices(uiw::tool::find_layout(), devices_json ? uiw::tool::DevicesAs::kJson
                                                                     : uiw::tool::DevicesAs::kText);
  if (doctor->parsed())
    return uiw::tool::doctor(uiw::tool::find_layout(),
                             doctor_json ? uiw::tool::ReportAs::kJson : uiw::tool::ReportAs::kText);
  if (enable->parsed())
    return uiw::tool::enable_system_wide(
        uiw::tool::find_layout(),
        force ? uiw::tool::Enable::kForced : uiw::tool::Enable::kWhenSeen);
  if (disable->parsed()) return uiw::tool::disable_system_wide();
  if (faults->parsed() && faults_page) {
    uiw::tool::print_faults_markdown();
    return 0;
  }
  if (faults->parsed() && faults_list) return uiw::tool::list_faults();
  if (faults->parsed() && !rules.empty()) return uiw::tool::explain_faults(rules);
  if (faults->parsed()) {
    const auto as = faults_json ? uiw::tool::LiveAs::kJson : uiw::tool::LiveAs::kText;
    if (faults_off) new_rules = "none";
    return new_rules.empty() ? uiw::tool::show_live_faults(faulty, as)
                             : uiw::tool::change_live_faults(faulty, new_rules, as);
  }
  if (netns_pair->parsed()) {
    if (std::string problem;
        !pair_check.empty() &&
        !uiw::tool::choose_check(pair_check == "true" ? "on" : pair_check, problem)) {
      fprintf(stderr, "uiwarp: %s\n", problem.c_str());
      return 2;
    }
    pair.server = commands.server;
    pair.client = commands.client;
    if (pair.server.empty() || pair.client.empty()) {
      fprintf(stderr, "uiwarp: which %s?\n%s", pair.server.empty() ? "server" : "client",
              netns_pair->help("uiwarp").c_str());
      return 2;
    }
    return uiw::tool::netns_pair(uiw::tool::find_layout(), pair);
  }
  if (shake->parsed()) return uiw::tool::shake(uiw::tool::find_layout(), plan, command);
  if (trace->parsed()) {
    using uiw::tool::TraceAs;
    if (!perfetto.empty()) return uiw::tool::show_trace(traces, TraceAs::kTimeline, perfetto);
    if (!pcap.empty()) return uiw::tool::show_trace(traces, TraceAs::kCapture, pcap);
    if (!html.empty()) return uiw::tool::show_trace(traces, TraceAs::kPage, html);
    return uiw::tool::show_trace(traces, trace_json ? TraceAs::kJson : TraceAs::kText, {});
  }
  if (stat->parsed()) {
    if (every > 0) return uiw::tool::watch(pid, every);
    return uiw::tool::stat(pid, stat_json    ? uiw::tool::StatAs::kJson
                                : prometheus ? uiw::tool::StatAs::kPrometheus
                                             : uiw::tool::StatAs::kText);
  }
  if (explain->parsed() && errors_page) {
    uiw::tool::print_explanations_markdown();
    return 0;
  }
  if (explain->parsed())
    return uiw::tool::explain(words,
                              as_json ? uiw::tool::ExplainAs::kJson : uiw::tool::ExplainAs::kText);
  if (markdown)
    uiw::tool::print_settings_markdown();
  else
    uiw::tool::print_settings();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int status = command(argc, argv);
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  fprintf(stderr, "uiwarp: standard output: %s\n", strerror(errno));
  return status ? status : 1;
}
