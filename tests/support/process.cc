#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/steady_time.h"

extern char** environ;

namespace encoderd {

Process::Process(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) !=
      0) {
    pid_ = -1;
  }
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  log_fd_ = ends[0];
}

Process::~Process() {
  if (!ended_ && pid_ > 0) {
    Signal(SIGKILL);
    Wait();
  }
  if (log_fd_ >= 0) close(log_fd_);
}

bool Process::ReadMore(absl::Time until) {
  const int64_t ms =
      std::max<int64_t>(0, absl::ToInt64Milliseconds(until - SteadyNow()));
  pollfd fd = {log_fd_, POLLIN, 0};
  if (poll(&fd, 1, static_cast<int>(ms)) <= 0) return false;
  char buffer[4096];
  const ssize_t size = read(log_fd_, buffer, sizeof(buffer));
  if (size <= 0) return false;
  log_.append(buffer, static_cast<size_t>(size));
  return true;
}

std::string Process::WaitForLine(const std::string& text,
                                 absl::Duration patience) {
  const absl::Time until = SteadyNow() + patience;
  do {
    size_t end = 0;
    while ((end = log_.find('\n', searched_)) != std::string::npos) {
      const std::string line = log_.substr(searched_, end - searched_);
      searched_ = end + 1;
      if (line.find(text) != std::string::npos) return line;
    }
  } while (ReadMore(until));
  return "";
}

void Process::Signal(int number) {
  if (!ended_ && pid_ > 0) kill(pid_, number);
}

int Process::Wait(absl::Duration patience) {
  const absl::Time until = SteadyNow() + patience;
  while (!ended_ && pid_ > 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      ended_ = true;
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    } else if (SteadyNow() >= until) {
      return -1000;
    } else {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  while (ReadMore(SteadyNow() + absl::Milliseconds(10))) {
  }
  return exit_code_;
}

std::string LogValue(const std::string& line, const std::string& key) {
  const std::string start = absl::StrCat(" ", key, "=");
  const size_t at = line.find(start);
  if (at == std::string::npos) return "";
  const size_t begin = at + start.size();
  return line.substr(begin, line.find(' ', begin) - begin);
}

}  // namespace encoderd
