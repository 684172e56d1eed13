// io_uring as the packet thread uses it: datagrams come by multishot receives into buffers that the kernel picks, and all
// that leaves in one turn goes by one system call. Spoken to directly, because what is needed of liburing is little.
#pragma once
#include <linux/io_uring.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace media {

/** One ring with its buffers. Made, used and destroyed on one thread (IORING_SETUP_SINGLE_ISSUER). */
class Uring {
 public:
  /** Null when the kernel or a sandbox does not allow it; `sockets`: how many can be attached at once. */
  static std::unique_ptr<Uring> open(unsigned sockets);
  ~Uring();
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;

  /** Puts a descriptor into a place of the table, -1 takes it out. False when the kernel refuses. */
  bool attach(unsigned place, int fd);
  unsigned places() const { return places_; }

  // What is to happen; all of it with the next submit. `tag` comes back with the completion.
  void receive(unsigned place, uint64_t tag);
  /** Bytes of one of our own buffers are sent from where they are, others are copied. A completion tells of failures
   * alone. */
  void send(unsigned place, const uint8_t* p, size_t n, uint64_t tag);
  /** Memory whose bytes the caller leaves alone until the next submit: they too are sent from where they are. */
  void trust(const uint8_t* begin, const uint8_t* end) {
    trusted_begin_ = begin;
    trusted_end_ = end;
  }
  void poll_once(int fd, uint64_t tag);
  /** Ends a receive. What it had received already still comes. */
  void cancel(uint64_t tag);

  struct Completion {
    uint64_t tag;
    int result;
    bool more;        // the receive goes on
    uint8_t* packet;  // null when none came; valid until give_back
  };
  /** A receive that ended with this result would end so again and again: this kernel or sandbox cannot do it. */
  static bool unusable(int result);
  /** Hands over what is asked, lets the kernel work off what came in, waits for one completion for `wait_us` at most.
   * Costs nothing when there is nothing to do. */
  void submit(uint64_t wait_us = 0);
  bool next(Completion& out);
  /** The tag of the completion after `n` others, for what can be fetched ahead; 0 when there is none. */
  uint64_t ahead(unsigned n) const {
    const unsigned at = *cq_head_ + n;
    return static_cast<int>(__atomic_load_n(cq_tail_, __ATOMIC_ACQUIRE) - at) > 0 ? completions_[at & cq_mask_].user_data
                                                                                  : 0;
  }
  /** The kernel has worked off a part only: another submit brings more. */
  bool unfinished() const {
    return __atomic_load_n(sq_flags_, __ATOMIC_ACQUIRE) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
  }
  /** Buffers taken by next() since the last call are the kernel's again. What they held must have been submitted. */
  void give_back();

  /** An odd number of cache lines: a power of two would lay the headers of all packets into a few sets of the caches. */
  static constexpr size_t kBufferSize = 27 * 64, kBuffers = 512;

 private:
  Uring() = default;
  bool set_up(unsigned sockets);
  bool full() const { return tail_ - __atomic_load_n(sq_head_, __ATOMIC_ACQUIRE) > sq_mask_; }
  io_uring_sqe* entry();
  void enter(unsigned to_submit, uint64_t wait_us);

  int fd_ = -1;
  unsigned places_ = 0;
  uint8_t* rings_ = nullptr;
  size_t rings_size_ = 0;
  io_uring_sqe* entries_ = nullptr;
  size_t entries_size_ = 0;
  unsigned *sq_head_ = nullptr, *sq_tail_ = nullptr, *sq_flags_ = nullptr;
  unsigned *cq_head_ = nullptr, *cq_tail_ = nullptr;
  unsigned sq_mask_ = 0, cq_mask_ = 0, tail_ = 0;
  io_uring_cqe* completions_ = nullptr;
  uint8_t* buffers_ = nullptr;  // the kernel's ring of buffers, the buffers, and then those for copies
  io_uring_buf_ring* buffer_ring_ = nullptr;
  uint16_t buffer_tail_ = 0;
  uint16_t taken_[kBuffers];
  unsigned taken_count_ = 0;
  unsigned copies_ = 0;
  const uint8_t *trusted_begin_ = nullptr, *trusted_end_ = nullptr;
};

}  // namespace media
