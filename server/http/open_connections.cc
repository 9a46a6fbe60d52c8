#include "http/open_connections.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>

#include "core/threads/guarded.h"

namespace linserve {
namespace {

constexpr uint64_t kChangedId = 0;

void EndOf(const OpenConnections::Wait& wait, bool in_time) {
  RunGuarded("the waking of an HTTP connection", [&] { wait.wake(in_time); });
}

bool IsForRequest(const OpenConnections::Wait& wait) {
  return wait.what == OpenConnections::For::kRequest || wait.what == OpenConnections::For::kHead;
}

// One event is seen, and then the descriptor has to be watched anew.
void Watched(int events, int how, int descriptor, uint32_t awaited, uint64_t id) {
  epoll_event event{.events = awaited, .data = {.u64 = id}};
  ::epoll_ctl(events, how, descriptor, &event);
}

}  // namespace

OpenConnections::OpenConnections()
    : events_(::epoll_create1(EPOLL_CLOEXEC)), changed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  Watched(events_.get(), EPOLL_CTL_ADD, changed_.get(), EPOLLIN, kChangedId);
  watch_ = std::thread([this] { Watch(); });
}

OpenConnections::~OpenConnections() {
  EndWaits();
  ended_ = true;
  ::eventfd_write(changed_.get(), 1);
  watch_.join();
}

void OpenConnections::HangUp() {
  const MutexLock lock(mutex_);
  for (const auto& [id, connection] : open_) ::shutdown(connection.descriptor, SHUT_RDWR);
}

bool OpenConnections::EndLongestWait(For what) {
  std::optional<Wait> ended;
  const MutexLock lock(mutex_);
  for (const auto& [deadline, id] : deadlines_) {
    if (open_.at(id).wait->what != what) continue;
    ended = End(id, /*in_time=*/false);
    return true;
  }
  return false;
}

void OpenConnections::EndWaits() {
  while (true) {
    std::optional<Wait> ended;
    const MutexLock lock(mutex_);
    waits_ended_ = true;
    if (deadlines_.empty()) return;
    const auto first = deadlines_.begin();
    ended.swap(open_.at(first->second).wait);
    deadlines_.erase(first);
    if (!IsForRequest(*ended)) EndOf(*ended, /*in_time=*/true);
  }
}

uint64_t OpenConnections::Add(Open connection) {
  const MutexLock lock(mutex_);
  const int descriptor = connection.descriptor;
  open_.emplace(++last_id_, std::move(connection));
  Watched(events_.get(), EPOLL_CTL_ADD, descriptor, EPOLLRDHUP | EPOLLONESHOT, last_id_);
  return last_id_;
}

void OpenConnections::Remove(uint64_t id) {
  const MutexLock lock(mutex_);
  ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, open_.at(id).descriptor, nullptr);
  open_.erase(id);
}

void OpenConnections::Begin(uint64_t id, Wait wait) {
  const MutexLock lock(mutex_);
  if (waits_ended_) {
    if (!IsForRequest(wait)) EndOf(wait, /*in_time=*/true);
    return;
  }
  Open& open = open_.at(id);
  const auto events = static_cast<uint32_t>(wait.events);  // epoll's are of the same values
  // Who sends no more is told of at once, again and again, though there may be no room for answers.
  const uint32_t leave = *open.left ? 0U : EPOLLRDHUP;
  const auto place = deadlines_.emplace(wait.deadline, id).first;
  open.wait = std::move(wait);
  Watched(events_.get(), EPOLL_CTL_MOD, open.descriptor, events | leave | EPOLLONESHOT, id);
  if (place == deadlines_.begin()) ::eventfd_write(changed_.get(), 1);
}

std::optional<OpenConnections::Wait> OpenConnections::End(uint64_t id, bool in_time) {
  Open& open = open_.at(id);
  std::optional<Wait> ended;
  ended.swap(open.wait);
  deadlines_.erase({ended->deadline, id});
  // From now on only whether the caller leaves is of interest.
  Watched(events_.get(), EPOLL_CTL_MOD, open.descriptor, EPOLLRDHUP | EPOLLONESHOT, id);
  EndOf(*ended, in_time);
  return ended;
}

void OpenConnections::Notice(uint64_t id, uint32_t events) {
  std::optional<Wait> ended;
  const MutexLock lock(mutex_);
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) *found->second.left = true;
  if (found->second.wait) ended = End(id, /*in_time=*/true);
}

int OpenConnections::EndLateWaits() {
  using std::chrono::milliseconds;
  while (true) {
    std::optional<Wait> ended;
    const MutexLock lock(mutex_);
    if (deadlines_.empty()) return -1;
    const auto [deadline, id] = *deadlines_.begin();
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left.count() > 0) {
      return static_cast<int>(
          std::min<int64_t>(std::chrono::ceil<milliseconds>(left).count(), INT_MAX));
    }
    ended = End(id, /*in_time=*/false);
  }
}

void OpenConnections::Watch() {
  std::array<epoll_event, 64> seen{};
  while (!ended_) {
    const int count = ::epoll_wait(events_.get(), seen.data(), seen.size(), EndLateWaits());
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = seen.at(static_cast<size_t>(i));
      eventfd_t changes = 0;
      if (event.data.u64 != kChangedId) {
        Notice(event.data.u64, event.events);
      } else {
        ::eventfd_read(changed_.get(), &changes);
      }
    }
  }
}

OpenConnections::Entry::Entry(OpenConnections& owner, int descriptor)
    : owner_(owner), id_(owner.Add({descriptor, left_})) {}

OpenConnections::Entry::~Entry() { owner_.Remove(id_); }

}  // namespace linserve
