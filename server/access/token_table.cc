#include "access/token_table.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "core/system/sha256.h"

namespace linserve {
namespace {

using nlohmann::json;

const std::map<std::string, bool Rights::*> kRights = {
    {"infer", &Rights::infer}, {"metrics", &Rights::metrics}, {"control", &Rights::control}};

constexpr std::array<const char*, 8> kKeys = {
    "name",         "token", "sha256", "may", "models", "requests_per_second", "bytes_per_second",
    "best_priority"};

// Each call looks at all of them.
constexpr size_t kMostTokens = 4096;
// In bytes. It stands in log lines and metrics.
constexpr size_t kLongestName = 128;
// A token of this length is long enough that nobody finds it by trying.
constexpr size_t kShortestToken = 16;

std::optional<std::string> FromHex(const std::string& text) {
  std::string hash(kSha256Bytes, '\0');
  if (text.size() != 2 * hash.size()) return std::nullopt;
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  for (size_t i = 0; i < hash.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    hash[i] = static_cast<char>(16 * high + low);
  }
  return hash;
}

// Says whether a header can carry the token: blanks around it would be taken off.
bool IsSendable(std::string_view token) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  return !token.starts_with(' ') && !token.ends_with(' ') &&
         std::none_of(token.begin(), token.end(), is_control);
}

class EntryReader {
 public:
  EntryReader(const json& entry, std::string where) : entry_(entry), where_(std::move(where)) {}

  absl::Status CheckKeys() const {
    if (!entry_.is_object()) return Fault("expected an object");
    for (const auto& [key, value] : entry_.items()) {
      if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
      return Fault("there is no key " + Quoted(key) + ", expected " + absl::StrJoin(kKeys, ", "));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Name() const {
    const auto name = entry_.find("name");
    std::string text = name != entry_.end() && name->is_string() ? name->get<std::string>() : "";
    if (!text.empty() && text.size() <= kLongestName) return text;
    return Fault("expected a \"name\" of up to " + std::to_string(kLongestName) +
                 " bytes, which logs and limits know it by");
  }

  absl::StatusOr<std::string> Hash() const {
    const auto token = entry_.find("token");
    const auto hash = entry_.find("sha256");
    if ((token == entry_.end()) == (hash == entry_.end())) {
      return Fault("expected either \"token\" or \"sha256\"");
    }
    const json& given = token != entry_.end() ? *token : *hash;
    if (token != entry_.end()) {
      const std::string text = given.is_string() ? given.get<std::string>() : "";
      if (text.size() >= kShortestToken && IsSendable(text)) return Sha256(text);
      return Fault("\"token\" must be a text of " + std::to_string(kShortestToken) +
                   " characters or more, without blanks at its ends and line breaks; `openssl rand "
                   "-hex 32` makes a good one");
    }
    const auto parsed = given.is_string() ? FromHex(given.get<std::string>()) : std::nullopt;
    if (parsed) return *parsed;
    return Fault(
        "\"sha256\" must be the token's hash in 64 hex digits: "
        "`printf %s TOKEN | sha256sum`");
  }

  absl::StatusOr<Rights> May() const {
    auto names = Texts("may");
    if (!names.ok()) return names.status();
    auto best = BestPriority();
    if (!best.ok()) return best.status();
    Rights rights;
    rights.best_priority = *best;
    if (!entry_.contains("may")) return rights;
    rights.infer = false;
    for (const std::string& name : *names) {
      const auto found = kRights.find(name);
      if (found == kRights.end()) {
        return Fault("\"may\" names " + Quoted(name) + ", expected infer, metrics or control");
      }
      rights.*(found->second) = true;
    }
    return rights;
  }

  // Returns the texts of a key; none if the key is not there.
  absl::StatusOr<std::set<std::string>> Texts(const char* key) const {
    std::set<std::string> texts;
    const auto found = entry_.find(key);
    if (found == entry_.end()) return texts;
    bool good = found->is_array() && !found->empty();
    for (const json& text : *found) good = good && text.is_string();
    if (!good) return Fault(Quoted(key) + " must be a list of texts, and not empty");
    for (const json& text : *found) texts.insert(text.get<std::string>());
    return texts;
  }

  absl::StatusOr<Priority> BestPriority() const {
    const auto found = entry_.find("best_priority");
    if (found == entry_.end()) return Priority::kNormal;
    const bool good = found->is_number_integer() && *found >= 1 && *found <= 3;
    if (!good) return Fault("\"best_priority\" must be 1, 2 or 3");
    return PriorityFromLevel(found->get<uint64_t>());
  }

  absl::StatusOr<double> Rate(const char* key) const {
    const auto found = entry_.find(key);
    if (found == entry_.end()) return 0.0;
    if (found->is_number() && found->get<double>() > 0) return found->get<double>();
    return Fault(Quoted(key) + " must be a number greater than 0");
  }

 private:
  absl::Status Fault(const std::string& what) const {
    return absl::InvalidArgumentError(where_ + ": " + what);
  }

  const json& entry_;
  const std::string where_;
};

struct Read {
  std::string hash;
  std::string name;
  Rights rights;
  std::set<std::string> models;
  Rates rates;
};

absl::StatusOr<Read> ReadEntry(const json& entry, size_t index) {
  const EntryReader reader(entry, "token " + std::to_string(index));
  if (absl::Status status = reader.CheckKeys(); !status.ok()) return status;
  auto name = reader.Name();
  auto hash = reader.Hash();
  auto rights = reader.May();
  auto models = reader.Texts("models");
  auto requests = reader.Rate("requests_per_second");
  auto bytes = reader.Rate("bytes_per_second");
  for (const absl::Status& status : {name.status(), hash.status(), rights.status(), models.status(),
                                     requests.status(), bytes.status()}) {
    if (!status.ok()) return status;
  }
  return Read{*hash, *name, *rights, *models, {*requests, *bytes}};
}

}  // namespace

absl::StatusOr<TokenTable> TokenTable::Parse(const std::string& text, const TokenTable* before) {
  const json parsed = ParseJson(text).value_or(json());
  const bool good = parsed.is_object() && parsed.size() == 1 && parsed.contains("tokens") &&
                    parsed["tokens"].is_array();
  if (!good) {
    // The parser's own words are not passed on, because they may quote a secret.
    return absl::InvalidArgumentError(
        "expected JSON of the form {\"tokens\": [{\"name\": ..., \"token\": ...}, ...]}, each "
        "key once");
  }
  if (parsed["tokens"].empty()) {
    return absl::InvalidArgumentError(
        "\"tokens\" is empty, so that nobody could call; without "
        "tokens_file everybody may");
  }
  if (parsed["tokens"].size() > kMostTokens) {
    return absl::InvalidArgumentError("there are " + std::to_string(parsed["tokens"].size()) +
                                      " tokens, expected at most " + std::to_string(kMostTokens));
  }
  TokenTable tokens;
  std::set<std::string> names;
  std::map<std::string, std::string> names_of;  // by the hashes of their tokens
  for (const json& entry : parsed["tokens"]) {
    auto read = ReadEntry(entry, tokens.entries_.size());
    if (!read.ok()) return read.status();
    if (!names.insert(read->name).second) {
      return absl::InvalidArgumentError("two tokens have the name " + Quoted(read->name));
    }
    const auto [other, added] = names_of.emplace(read->hash, read->name);
    if (!added) {
      return absl::InvalidArgumentError("the tokens " + Quoted(other->second) + " and " +
                                        Quoted(read->name) + " are the same");
    }
    auto budget = std::make_shared<Budget>(read->rates);
    if (before != nullptr) {
      for (const Entry& old : before->entries_) {
        const bool same =
            old.caller->name() == read->name && old.caller->budget()->rates() == read->rates;
        if (same) budget = old.caller->budget();
      }
    }
    tokens.entries_.push_back(
        {read->hash, std::make_shared<const Caller>(read->name, read->rights, read->models,
                                                    std::move(budget))});
  }
  return tokens;
}

std::shared_ptr<const Caller> TokenTable::Find(std::string_view token) const {
  const std::string hash = Sha256(token);
  std::shared_ptr<const Caller> caller;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0) caller = entry.caller;
  }
  return caller;
}

}  // namespace linserve
