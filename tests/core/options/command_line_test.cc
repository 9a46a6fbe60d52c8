#include "core/options/command_line.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

namespace linserve {
namespace {

using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

// Makes a program with a subcommand, each with an option.
class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.add_option("--target", target_);
    app_.add_option("--timeout", timeout_)->check(CLI::Range(0.0, 1e6));
    CLI::App* serve = app_.add_subcommand("serve", "Serves");
    serve->add_option("--threads", threads_);
    serve->add_flag("--truncate{right}", side_);
    serve->add_flag("--quiet");
    serve->add_flag("--drain-timeout-seconds");
  }

  std::optional<int> Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "program");
    return ParseCommandLine(app_, static_cast<int>(arguments.size()), arguments.data());
  }

  std::string Fault(const std::vector<const char*>& arguments) {
    CaptureStderr();
    EXPECT_EQ(Parse(arguments), 2);
    return GetCapturedStderr();
  }

  CLI::App app_;
  std::string target_;
  double timeout_ = 0;
  int threads_ = 0;
  std::string side_;
};

TEST_F(CommandLineTest, GoesOnWhereAllIsWell) {
  EXPECT_EQ(Parse({"serve", "--threads", "3", "--target", "here"}), std::nullopt);
  EXPECT_EQ(threads_, 3);
  EXPECT_EQ(target_, "here");
}

TEST_F(CommandLineTest, TakesNoNanForANumber) {
  EXPECT_EQ(Parse({"--timeout", "0.5", "--target", "nan", "serve"}), std::nullopt);
  EXPECT_THAT(Fault({"--timeout", "nan", "serve"}),
              HasSubstr("--timeout: expected a number, got nan"));
  EXPECT_THAT(Fault({"--timeout=-NAN", "serve"}), HasSubstr("got -NAN"));
}

TEST_F(CommandLineTest, EndsWellAfterHelp) {
  CaptureStdout();
  EXPECT_EQ(Parse({"serve", "--help"}), 0);
  EXPECT_THAT(GetCapturedStdout(), HasSubstr("--threads"));
}

TEST_F(CommandLineTest, SaysWhatAMisspeltNameWasMeantToBe) {
  EXPECT_EQ(Fault({"serve", "--thread", "3"}),
            "unknown option --thread of serve; did you mean --threads?\n"
            "Run with --help for more information.\n");
  EXPECT_THAT(Fault({"serve", "--tagret=x"}), HasSubstr("did you mean --target?"));
  EXPECT_THAT(Fault({"srve"}), HasSubstr("unknown subcommand 'srve'; did you mean serve?"));
  EXPECT_THAT(Fault({"--tarket", "x", "serve"}), HasSubstr("did you mean --target?"));
  EXPECT_THAT(Fault({"serve", "--drain"}), HasSubstr("did you mean --drain-timeout-seconds?"));
}

TEST_F(CommandLineTest, SuggestsNothingFarOff) {
  EXPECT_THAT(Fault({"serve", "--verbose"}), HasSubstr("unknown option --verbose of serve\n"));
  EXPECT_THAT(Fault({"list"}), HasSubstr("unknown subcommand 'list'\n"));
}

TEST_F(CommandLineTest, SaysWhatElseIsWrong) {
  EXPECT_THAT(Fault({}), HasSubstr("A subcommand is required"));
  EXPECT_THAT(Fault({"serve", "more"}), HasSubstr("unexpected argument 'more'\n"));
  EXPECT_THAT(Fault({"serve", "more", "--quiet"}), HasSubstr("unexpected argument 'more'\n"));
  EXPECT_THAT(
      Fault({"serve", "--truncate", "left"}),
      HasSubstr("unexpected argument 'left'; the value of --truncate stands behind =, as in "
                "--truncate=right\n"));
  EXPECT_THAT(Fault({"serve", "--threads", "many"}), HasSubstr("--threads"));
}

}  // namespace
}  // namespace linserve
