#include "tests/cpp/support/daemon_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/base/clock.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/codec.h"

namespace gpushare::testing {
namespace {

constexpr Nanos kLongestStart = seconds(20);

int exit_code_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(fd, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

TempFolder::TempFolder() {
  std::string name = "/tmp/gpushare-test-XXXXXX";
  path_ = ::mkdtemp(name.data()) == nullptr ? "" : name;
  EXPECT_FALSE(path_.empty());
}

TempFolder::~TempFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
  EXPECT_FALSE(error) << error.message();
}

bool eventually(const std::function<bool()>& is_true) {
  const Nanos deadline = monotonic_now() + kLongestStart;
  while (!is_true()) {
    if (monotonic_now() > deadline) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

pid_t spawn_gpushared(const std::vector<std::string>& arguments, int stderr_fd) {
  // Accounts go where a test says, and not into the home of whoever runs it.
  std::vector<std::string> words{GS_DAEMON_PATH, "--accounts-folder", "none"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (stderr_fd >= 0) ::dup2(stderr_fd, STDERR_FILENO);
  // No file of the machine's own settings may change a test.
  ::setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
  ::unsetenv("GPUSHARE_SOCKET");
  ::unsetenv("GPUSHARE_CONFIG");
  ::execv(argv.front(), argv.data());
  ::_exit(127);
}

Ended run_gpushared(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t pid = spawn_gpushared(arguments, writer.get());
  writer.reset();
  Ended ended;
  ended.error_text = read_to_end(reader.get());
  ended.exit_code = exit_code_of(pid);
  return ended;
}

DaemonProcess::DaemonProcess(const TempFolder& folder, std::vector<std::string> more)
    : socket_(folder.path() + "/sock") {
  std::vector<std::string> arguments{
      "--socket",         socket_, "--capacity",    "64MiB",
      "--log-level",      "debug", "--log-file",    folder.path() + "/log",
      "--min-quantum-ms", "0",     "--gap-poll-ms", "1",
      "--max-wait-ms",    "1000"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  pid_ = spawn_gpushared(arguments, -1);
  EXPECT_TRUE(eventually([this] { return ipc::connect_to(socket_).has_value(); }));
}

DaemonProcess::~DaemonProcess() {
  if (pid_ <= 0) return;
  signal(SIGKILL);
  wait();
}

void DaemonProcess::signal(int number) const { ::kill(pid_, number); }

int DaemonProcess::wait() { return exit_code_of(std::exchange(pid_, -1)); }

StatusClient::StatusClient(const std::string& socket) {
  auto connected = ipc::connect_to(socket);
  EXPECT_TRUE(connected.has_value()) << (connected ? "" : connected.error().message());
  if (connected) socket_ = std::move(*connected);
}

wire::CoordinatorMessage StatusClient::ask(const wire::JobMessage& message) {
  return ask_bytes(wire::encode(message));
}

void StatusClient::tell(const wire::JobMessage& message) {
  const Status sent = ipc::send_packet(socket_.get(), wire::encode(message));
  EXPECT_TRUE(sent.ok()) << sent.to_string();
}

wire::CoordinatorMessage StatusClient::ask_bytes(const std::string& bytes) {
  const Status sent = ipc::send_packet(socket_.get(), bytes);
  EXPECT_TRUE(sent.ok()) << sent.to_string();
  return receive();
}

wire::CoordinatorMessage StatusClient::receive() {
  const auto is_readable = ipc::wait_readable(socket_.get(), kLongestStart);
  EXPECT_TRUE(is_readable.has_value() && *is_readable);
  const auto packet = ipc::receive_packet(socket_.get(), wire::kMaxMessageBytes);
  EXPECT_TRUE(packet.has_value());
  if (!packet || packet->is_end) return wire::Refused{"closed"};
  auto message = wire::decode_from_coordinator(packet->bytes);
  EXPECT_TRUE(message.has_value()) << packet->bytes;
  return message ? *message : wire::Refused{"no message"};
}

bool StatusClient::is_at_end() {
  const auto is_readable = ipc::wait_readable(socket_.get(), kLongestStart);
  if (!is_readable || !*is_readable) return false;
  const auto packet = ipc::receive_packet(socket_.get(), wire::kMaxMessageBytes);
  return packet.has_value() && packet->is_end;
}

nlohmann::json status_of(const std::string& socket) {
  const auto answer = StatusClient(socket).ask(wire::StatusRequest{});
  const auto* report = std::get_if<wire::StatusReport>(&answer);
  EXPECT_NE(report, nullptr);
  return report == nullptr ? nlohmann::json() : nlohmann::json::parse(report->report);
}

nlohmann::json job_row(const std::string& socket, std::uint64_t job) {
  const nlohmann::json status = status_of(socket);  // named: it must outlive the loop
  for (const auto& device : status["devices"]) {
    for (const auto& row : device["jobs"]) {
      if (row["job"] == job) return row;
    }
  }
  return nullptr;
}

void wait_for_state(const std::string& socket, std::uint64_t job, const std::string& state) {
  EXPECT_TRUE(eventually([&] {
    const nlohmann::json row = job_row(socket, job);
    return row.is_object() && row["state"] == state;
  })) << job
      << " never " << state << ": " << status_of(socket).dump(2);
}

}  // namespace gpushare::testing
