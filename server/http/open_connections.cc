#include "http/open_connections.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace linserve {
namespace {

constexpr uint64_t kEndId = 0;

void AddTo(int events, int descriptor, uint32_t awaited, uint64_t id) {
  epoll_event event{.events = awaited, .data = {.u64 = id}};
  ::epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event);
}

}  // namespace

OpenConnections::OpenConnections()
    : events_(::epoll_create1(EPOLL_CLOEXEC)), end_(::eventfd(0, EFD_CLOEXEC)) {
  AddTo(events_.get(), end_.get(), EPOLLIN, kEndId);
  watch_ = std::thread([this] { Watch(); });
}

OpenConnections::~OpenConnections() {
  ::eventfd_write(end_.get(), 1);
  watch_.join();
}

void OpenConnections::HangUp() {
  const MutexLock lock(mutex_);
  for (const auto& [id, connection] : open_) ::shutdown(connection.descriptor, SHUT_RDWR);
}

uint64_t OpenConnections::Add(const Open& connection) {
  const MutexLock lock(mutex_);
  open_[++last_id_] = connection;
  AddTo(events_.get(), connection.descriptor, EPOLLRDHUP | EPOLLONESHOT, last_id_);
  return last_id_;
}

void OpenConnections::Remove(uint64_t id) {
  const MutexLock lock(mutex_);
  ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, open_.at(id).descriptor, nullptr);
  open_.erase(id);
}

void OpenConnections::Watch() {
  std::array<epoll_event, 64> seen{};
  while (true) {
    const int count = ::epoll_wait(events_.get(), seen.data(), seen.size(), -1);
    if (count < 0 && errno != EINTR) return;
    const MutexLock lock(mutex_);
    for (int i = 0; i < count; ++i) {
      const uint64_t id = seen.at(static_cast<size_t>(i)).data.u64;
      if (id == kEndId) return;
      const auto found = open_.find(id);
      if (found != open_.end()) *found->second.left = true;
    }
  }
}

OpenConnections::Entry::Entry(OpenConnections& owner, int descriptor)
    : owner_(owner), id_(owner.Add({descriptor, left_})) {}

OpenConnections::Entry::~Entry() { owner_.Remove(id_); }

}  // namespace linserve
