// A fake /proc in a folder: processes as csrc/daemon reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace gpushare::testing {

struct FakeProcess {
  std::int32_t pid = 0;
  std::int32_t parent = 1;
  std::uint64_t start_ticks = 100;
  std::int64_t resident_pages = 100'000;
  std::string name = "python";
  std::string_view command = "python";  // arguments end in \0 each
  std::string maps = "";
  char state = 'S';
};

inline void write_file(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline void add_process(const std::string& root, const FakeProcess& process) {
  const std::filesystem::path folder =
      std::filesystem::path(root) / "proc" / std::to_string(process.pid);
  write_file(folder / "stat", std::to_string(process.pid) + " (" + process.name + ") " +
                                  process.state + " " + std::to_string(process.parent) +
                                  " 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 " +
                                  std::to_string(process.start_ticks) + " 9 10\n");
  write_file(folder / "statm",
             "900000 " + std::to_string(process.resident_pages) + " 10 1 0 20 0\n");
  write_file(folder / "cmdline", process.command);
  write_file(folder / "maps", process.maps);
}

inline const char* torch_maps() {
  return "7f00-7f10 r--p 00000000 00:00 0 \n"
         "7f20-7f30 r-xp 00000000 08:01 12  /usr/lib/python3/torch/lib/libtorch_cpu.so\n";
}

}  // namespace gpushare::testing
