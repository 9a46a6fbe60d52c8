#include "http/framing/grammar.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace linserve {
namespace {

constexpr std::string_view kBlank = " \t";
constexpr std::string_view kInToken = "!#$%&'*+-.^_`|~";
constexpr std::string_view kInName = "-._~!$&'()*+,;=";  // unreserved and sub-delims of RFC 3986
constexpr std::string_view kInPath = "-._~!$&'()*+,;=:@/";
constexpr std::string_view kInQuery = "-._~!$&'()*+,;=:@/?";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsAlphanumeric(char c) { return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'z'); }

// Reads the two digits after a '%' at `at`.
std::optional<char> Encoded(std::string_view text, size_t at) {
  const std::string_view digits = text.substr(at + 1, 2);
  unsigned value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [read, error] = std::from_chars(digits.data(), end, value, 16);
  if (digits.size() < 2 || read != end || error != std::errc()) return std::nullopt;
  return static_cast<char>(value);
}

// Says whether the text is of letters, digits, `others`, and whatever else is encoded.
bool IsUriText(std::string_view text, std::string_view others) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (!Encoded(text, i)) return false;
      i += 2;
    } else if (!IsAlphanumeric(text[i]) && others.find(text[i]) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

// Says whether the text is like "[::1]"; nobody has defined another kind.
bool IsIpLiteral(std::string_view text) {
  if (text.size() < 2 || text.back() != ']') return false;
  in6_addr address{};
  return ::inet_pton(AF_INET6, std::string(text.substr(1, text.size() - 2)).c_str(), &address) == 1;
}

// Says what a target consists of.
struct TargetParts {
  std::optional<std::string_view> authority;  // of the absolute form
  std::string_view path;
  std::string_view query;  // with its question mark
};

TargetParts PartsOf(std::string_view target) {
  TargetParts parts;
  if (const size_t scheme = target.find("://"); !target.starts_with('/')) {
    const std::string_view name = target.substr(0, std::min(scheme, target.size()));
    if (scheme == std::string_view::npos ||
        (!SameButCase(name, "http") && !SameButCase(name, "https"))) {
      return parts;
    }
    target.remove_prefix(scheme + 3);
    parts.authority = target.substr(0, target.find_first_of("/?"));
    target.remove_prefix(parts.authority->size());
  }
  parts.path = target.substr(0, target.find('?'));
  parts.query = target.substr(parts.path.size());
  return parts;
}

// Takes a quoted string off the front; false if there is none.
bool TakeQuoted(std::string_view& text) {
  if (!text.starts_with('"')) return false;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return true;
    }
    if (text[i] == '\\') ++i;
  }
  return false;
}

bool TakeToken(std::string_view& text) {
  size_t size = 0;
  while (size < text.size() && IsToken(text.substr(size, 1))) ++size;
  text.remove_prefix(size);
  return size > 0;
}

// Takes the character off the front, with the white space before it.
bool Take(std::string_view& text, char wanted) {
  const size_t at = text.find_first_not_of(kBlank);
  if (at == std::string_view::npos || text[at] != wanted) return false;
  text.remove_prefix(at + 1);
  return true;
}

void SkipBlank(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
}

}  // namespace

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return IsAlphanumeric(c) || kInToken.find(c) != std::string_view::npos;
  });
}

bool IsFieldValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= ' ' && byte != 0x7f);
  });
}

bool IsHost(std::string_view text) {
  const bool literal = text.starts_with('[');
  const size_t size = literal ? text.find(']') + 1 : std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, size);
  std::string_view port = text.substr(size);
  if (literal ? !IsIpLiteral(name) : !IsUriText(name, kInName)) return false;
  if (port.empty()) return true;
  port.remove_prefix(1);  // the colon, as a literal's bracket was found
  return text[size] == ':' && std::all_of(port.begin(), port.end(), IsDigit);
}

bool AreChunkExtensions(std::string_view text) {
  if (!IsFieldValue(text)) return false;  // which quotes may hold, too
  while (!text.empty()) {
    if (!Take(text, ';')) return false;
    SkipBlank(text);
    if (!TakeToken(text)) return false;
    if (!Take(text, '=')) continue;
    SkipBlank(text);
    if (!TakeQuoted(text) && !TakeToken(text)) return false;
  }
  return true;
}

bool IsTarget(std::string_view text) {
  const TargetParts parts = PartsOf(text);
  if (parts.authority) {
    if (parts.authority->empty() || parts.authority->starts_with(':')) return false;
    if (!IsHost(*parts.authority)) return false;
  } else if (parts.path.empty()) {
    return false;
  }
  return IsUriText(parts.path, kInPath) && IsUriText(parts.query, kInQuery);
}

bool SameButCase(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](char a, char b) { return Lower(a) == Lower(b); });
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  return lower;
}

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

std::vector<std::string> ElementsOf(std::string_view list) {
  std::vector<std::string> elements;
  while (!list.empty()) {
    const std::string_view element = list.substr(0, list.find(','));
    list.remove_prefix(std::min(element.size() + 1, list.size()));
    if (!Trimmed(element).empty()) elements.push_back(LowerCase(Trimmed(element)));
  }
  return elements;
}

std::optional<double> WeightOf(const std::vector<std::string>& wanted, std::string_view choice) {
  for (std::string_view element : wanted) {
    if (Trimmed(element.substr(0, element.find(';'))) != choice) continue;
    double weight = 1;
    for (size_t next = element.find(';'); next != std::string_view::npos;
         next = element.find(';')) {
      element.remove_prefix(next + 1);
      const std::string_view parameter = Trimmed(element.substr(0, element.find(';')));
      if (!parameter.starts_with("q=")) continue;
      const char* const end = parameter.data() + parameter.size();
      const auto [last, error] =
          std::from_chars(parameter.data() + 2, end, weight, std::chars_format::fixed);
      if (last != end || error != std::errc() || weight > 1) return 0;
    }
    return weight;
  }
  return std::nullopt;
}

std::string PathOf(std::string_view target) {
  const std::string_view path = PartsOf(target).path;
  if (path.empty()) return "/";
  std::string decoded;
  for (size_t i = 0; i < path.size(); ++i) {
    const std::optional<char> encoded = path[i] == '%' ? Encoded(path, i) : std::nullopt;
    decoded += encoded.value_or(path[i]);
    if (encoded) i += 2;
  }
  return decoded;
}

}  // namespace linserve
