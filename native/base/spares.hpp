// Objects kept for the next call, because making them costs more than a short call.
#pragma once

#include <array>
#include <atomic>
#include <memory>

namespace crfit {

// Thread-safe. Without a lock, so a forked child cannot find it held.
template <class T>
class Spares {
 public:
  Spares() = default;
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;
  ~Spares() {
    while (take() != nullptr) continue;
  }

  // One of them, or null.
  std::unique_ptr<T> take() {
    for (std::atomic<T*>& slot : slots_)
      if (slot.load(std::memory_order_relaxed) != nullptr)
        if (T* spare = slot.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<T>(spare);
    return nullptr;
  }

  // Keeps it, or frees it if there are enough.
  void give(std::unique_ptr<T> spare) {
    for (std::atomic<T*>& slot : slots_) {
      T* none = nullptr;
      if (slot.compare_exchange_strong(none, spare.get(), std::memory_order_release, std::memory_order_relaxed)) {
        spare.release();
        return;
      }
    }
  }

 private:
  std::array<std::atomic<T*>, 16> slots_{};
};

}  // namespace crfit
