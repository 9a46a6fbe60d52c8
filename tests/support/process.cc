#include "support/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

extern char** environ;

namespace linserve {
namespace {

constexpr std::chrono::minutes kPatience(2);

std::vector<std::string> Environment(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool of_tests = text.starts_with("LINSERVE_") || text.starts_with("OMP_");
    if (!of_tests) environment.push_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Opens a pipe that children do not inherit unless told.
struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0); }
  std::array<int, 2> ends{};
};

}  // namespace

Process::Process(const std::vector<std::string>& command,
                 const std::map<std::string, std::string>& variables,
                 const std::string& standard_input) {
  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = Environment(variables);
  const Pipe in;
  const Pipe out;
  const Pipe err;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.ends[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.ends[1], STDERR_FILENO);
  const int spawned = ::posix_spawn(&pid_, arguments[0].c_str(), &actions, nullptr,
                                    Pointers(arguments).data(), Pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(spawned, 0) << arguments[0];
  ::close(out.ends[1]);
  ::close(err.ends[1]);
  out_.Start(out.ends[0]);
  err_.Start(err.ends[0]);
  // The text is short enough to fit into the pipe, which has a reader even where the program has
  // ended already.
  EXPECT_EQ(::write(in.ends[1], standard_input.data(), standard_input.size()),
            static_cast<ssize_t>(standard_input.size()));
  ::close(in.ends[1]);
  ::close(in.ends[0]);
  if (spawned == 0) return;
  pid_ = -1;
  out_.Join();
  err_.Join();
}

Process::~Process() {
  if (pid_ > 0 && code_ < 0) {
    Signal(SIGKILL);
    Wait();
  }
}

void Process::Captured::Start(int pipe) {
  reader_ = std::thread([this, pipe] { Read(pipe); });
}

void Process::Captured::Read(int pipe) {
  std::array<char, 4096> bytes;
  ssize_t count = 0;
  while ((count = ::read(pipe, bytes.data(), bytes.size())) > 0) {
    MutexLock lock(mutex_);
    text_.append(bytes.data(), static_cast<size_t>(count));
    changed_.NotifyAll();
  }
  ::close(pipe);
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

bool Process::Captured::WaitFor(const std::string& text, Time limit) {
  MutexLock lock(mutex_);
  while (text_.find(text) == std::string::npos) {
    if (ended_ || !changed_.WaitUntil(lock, limit)) return false;
  }
  return true;
}

bool Process::Captured::WaitForEnd(Time limit) {
  MutexLock lock(mutex_);
  while (!ended_) {
    if (!changed_.WaitUntil(lock, limit)) return false;
  }
  return true;
}

std::string Process::Captured::text() const {
  MutexLock lock(mutex_);
  return text_;
}

bool Process::WaitForOut(const std::string& text) {
  return out_.WaitFor(text, std::chrono::steady_clock::now() + kPatience);
}

bool Process::WaitForError(const std::string& text) {
  return err_.WaitFor(text, std::chrono::steady_clock::now() + kPatience);
}

int Process::Wait() {
  if (code_ >= 0 || pid_ < 0) return code_;
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  // A program has ended when its outputs have.
  if (!out_.WaitForEnd(limit) || !err_.WaitForEnd(limit)) {
    ADD_FAILURE() << "the program does not end; it says\n" << out_.text() << err_.text();
    Signal(SIGKILL);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
  out_.Join();
  err_.Join();
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code_;
}

void Process::Signal(int signal) const { ::kill(pid_, signal); }

std::string Process::out() const { return out_.text(); }

std::string Process::err() const { return err_.text(); }

}  // namespace linserve
