#include "core/system/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "core/system/control_groups.h"

namespace linserve {
namespace {

// Is a part of this process's memory, as /proc/self/smaps has it.
struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool read_only_file = false;
};

// Reads a line that begins a mapping: "7f00-7f10 r-xp 00000000 08:01 123   /usr/lib/libc.so.6".
// Most lines do not, and tell of the mapping before.
std::optional<Mapping> MappingOf(const std::string& line) {
  const bool begins = !line.empty() && (line[0] < 'A' || line[0] > 'Z');
  if (!begins) return std::nullopt;
  std::istringstream fields(line);
  Mapping mapping;
  char dash = 0;
  std::string access;
  std::string offset;
  std::string device;
  std::string inode;
  std::string path;
  fields >> std::hex >> mapping.begin >> dash >> mapping.end >> access;
  if (!fields || dash != '-') return std::nullopt;
  fields >> offset >> device >> inode >> path;
  mapping.read_only_file = access.starts_with("r-") && path.starts_with('/');
  return mapping;
}

}  // namespace

int64_t MemoryBytes() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return std::min(machine, OwnGroupLimits().memory_bytes);
}

int64_t AnonymousBytes() {
  std::ifstream status("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  int64_t shared = 0;
  if (!(status >> size >> resident >> shared)) return 0;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

void GiveBackCode() {
  std::ifstream mappings("/proc/self/smaps");
  Mapping mapping;
  for (std::string line; std::getline(mappings, line);) {
    if (const auto next = MappingOf(line)) mapping = *next;
    if (!mapping.read_only_file || !line.starts_with("Anonymous:")) continue;
    // Pages that are not as in the file have a debugger's breakpoints, or relocations, in them.
    if (line.find_first_of("123456789") != std::string::npos) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): so the system tells of places
    ::madvise(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, MADV_DONTNEED);
  }
}

int64_t PeakResidentBytes(const std::string& process) {
  // The system's own getrusage() counts what the process was before it became this program, too.
  std::ifstream status("/proc/" + process + "/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return 0;
}

std::string FormatBytes(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text.data();
}

}  // namespace linserve
