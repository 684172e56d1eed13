// Starts a program that may open only the files that are named here, and use only the system calls that it needs:
// Landlock (landlock(7)) for files, a filter (seccomp(2)) for system calls. Both hold for every thread from the first
// instruction of the program on, and nothing can lift them. bin/confinement.ts decides what each process may do.
//
//   confine [--read PATH] [--write PATH] [--sockets FOLDER] [--run FILE] [--programs] [--io-uring] -- COMMAND [WORD]...
//   confine --check
//
// --read PATH       a file, or all below a folder, may be read
// --write PATH      likewise read, written, created and removed
// --sockets FOLDER  Unix sockets come and go in it
// --run FILE        may be executed
// --programs        COMMAND may start processes; without it, it may not, and cannot replace itself either
// --io-uring, --packets   calls of the media plane: io_uring(7), and sockets of packet(7)
// --check           prints what the kernel has, as JSON
//
// A kernel without one of the two leaves out that part: the caller finds out by --check.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

namespace {

[[noreturn]] void fail(const char *what, const char *of = "") {
  fprintf(stderr, "confine: %s %s: %s\n", what, of, strerror(errno));
  exit(1);
}

// Landlock. The headers of Debian 12 are older than the kernels that it meets, so the numbers stand here
// (https://docs.kernel.org/userspace-api/landlock.html).
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDir = 1 << 3;
constexpr uint64_t kRemoveDir = 1 << 4, kRemoveFile = 1 << 5, kMakeDir = 1 << 7, kMakeReg = 1 << 8;
constexpr uint64_t kMakeSock = 1 << 9, kMakeSym = 1 << 12, kRefer = 1 << 13, kTruncate = 1 << 14, kIoctlDev = 1 << 15;
constexpr uint64_t kAllOfFirst = (1 << 13) - 1;
constexpr uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate;
constexpr uint64_t kRead = kReadFile | kReadDir;
constexpr uint64_t kWrite = kRead | kWriteFile | kTruncate | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg |
                            kMakeSock | kMakeSym | kRefer;
/** Abstract Unix sockets and signals of processes outside. */
constexpr uint64_t kScopes = 3;

struct RulesetAttr {
  uint64_t handled_fs, handled_net, scoped;
};
struct __attribute__((packed)) PathBeneathAttr {
  uint64_t allowed;
  int32_t parent_fd;
};

/** The version of Landlock that the kernel has; 0 for none. */
int landlockVersion() {
  const long version = syscall(kCreateRuleset, nullptr, 0, 1);
  return version > 0 ? static_cast<int>(version) : 0;
}

class Files {
 public:
  explicit Files(int version) {
    if (version == 0) return;
    handled_ = kAllOfFirst;
    if (version >= 2) handled_ |= kRefer;
    if (version >= 3) handled_ |= kTruncate;
    if (version >= 5) handled_ |= kIoctlDev;
    const RulesetAttr attr{handled_, 0, version >= 6 ? kScopes : 0};
    const size_t size = version >= 6 ? sizeof attr : sizeof attr.handled_fs;
    ruleset_ = static_cast<int>(syscall(kCreateRuleset, &attr, size, 0));
  }

  /** Allows these rights to a file, or below a folder. A path that is not there needs no rule. */
  void allow(const char *path, uint64_t rights) const {
    if (ruleset_ < 0) return;
    const int at = open(path, O_PATH | O_CLOEXEC);
    if (at < 0) return;
    struct stat about;
    if (fstat(at, &about) != 0) fail("stat", path);
    if (!S_ISDIR(about.st_mode)) rights &= kOfFiles;
    const PathBeneathAttr rule{rights & handled_, at};
    // EBADFD: a descriptor of no file, such as a pipe.
    if (rule.allowed != 0 && syscall(kAddRule, ruleset_, 1, &rule, 0) != 0 && errno != EBADFD)
      fail("cannot allow", path);
    close(at);
  }

  void enforce() const {
    if (ruleset_ < 0) return;
    // E2BIG: we run in sixteen confinements already.
    if (syscall(kRestrictSelf, ruleset_, 0) != 0 && errno != E2BIG) fail("cannot restrict files");
    close(ruleset_);
  }

 private:
  uint64_t handled_ = 0;
  int ruleset_ = -1;
};

/** The path of the loader of this program, which is that of most others: who may execute a file needs it too. */
const char *loader() {
  const char *found = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *out) {
        for (const ElfW(Phdr) *part = info->dlpi_phdr; part != info->dlpi_phdr + info->dlpi_phnum; part++)
          if (part->p_type == PT_INTERP)
            *static_cast<const char **>(out) = reinterpret_cast<const char *>(info->dlpi_addr + part->p_vaddr);
        return 1;
      },
      &found);
  return found;
}

// The filter of system calls.
#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the filter knows x86-64 and AArch64"
#endif

/** What no process of ours needs: tracing, kernel code and keys, mounts, namespaces, clocks, files by handle. */
constexpr long kNever[] = {
    SYS_ptrace,          SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp,          SYS_perf_event_open,
    SYS_bpf,             SYS_userfaultfd,      SYS_keyctl,            SYS_add_key,       SYS_request_key,
    SYS_init_module,     SYS_finit_module,     SYS_delete_module,     SYS_kexec_load,    SYS_reboot,
    SYS_mount,           SYS_umount2,          SYS_pivot_root,        SYS_chroot,        SYS_unshare,
    SYS_setns,           SYS_swapon,           SYS_swapoff,           SYS_acct,          SYS_quotactl,
    SYS_syslog,          SYS_sethostname,      SYS_setdomainname,     SYS_personality,   SYS_settimeofday,
    SYS_clock_settime,   SYS_adjtimex,         SYS_clock_adjtime,     SYS_vhangup,       SYS_mknodat,
    SYS_fanotify_init,   SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_open_tree,    SYS_move_mount,
    SYS_fsopen,          SYS_fsconfig,         SYS_fsmount,           SYS_fspick,        SYS_pidfd_getfd,
#if defined(__x86_64__)
    SYS_kexec_file_load, SYS_iopl,             SYS_ioperm,            SYS_modify_ldt,    SYS_uselib,
    SYS_mknod,
#endif
};
constexpr long kOfRings[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};
constexpr long kOfProcesses[] = {
#if defined(__x86_64__)
    SYS_fork,
    SYS_vfork,
#endif
};
constexpr uint32_t kFamilies[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

// Processes of one user may signal each other, and SIGUSR1 opens the debugger of Node.js: whoever takes over the edge
// would run code in the control process. Landlock keeps signals inside from Linux 6.12 on alone.
/** Calls whose first argument is the process that they signal. */
constexpr long kSignals[] = {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo};
/** Signals by a thread's number alone, or by a descriptor of a process. */
constexpr long kOtherSignals[] = {SYS_tkill, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal};
/** Whom the kernel signals when a descriptor is ready (fcntl(2), ioctl(2)). */
constexpr uint32_t kOwners[] = {F_SETOWN, F_SETSIG, F_SETOWN_EX};
constexpr uint32_t kOwnersByIoctl[] = {FIOSETOWN, SIOCSPGRP};

class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    unless(kArchitecture, SECCOMP_RET_KILL_PROCESS);
    number();
#if defined(__x86_64__)
    // The other numbering of the same calls, x32.
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
    give(SECCOMP_RET_ERRNO | ENOSYS);
#endif
  }

  void refuse(long call, int error = EPERM) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    give(SECCOMP_RET_ERRNO | error);
  }

  /** Lets `call` pass when its argument has one of these values, or one of these bits. */
  void only(long call, unsigned argument, const std::vector<uint32_t> &values, uint16_t test, int error) {
    const size_t length = 1 + 2 * values.size() + 1;
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, static_cast<uint8_t>(length)));
    load(offsetof(seccomp_data, args) + 8 * argument);
    for (const uint32_t value : values) {
      code_.push_back(BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, 1));
      give(SECCOMP_RET_ALLOW);
    }
    give(SECCOMP_RET_ERRNO | error);
  }

  /** Refuses `call` when its argument has one of these values. */
  void never(long call, unsigned argument, const std::vector<uint32_t> &values) {
    const size_t length = 1 + 2 * values.size() + 1;
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, static_cast<uint8_t>(length)));
    load(offsetof(seccomp_data, args) + 8 * argument);
    for (const uint32_t value : values) {
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
      give(SECCOMP_RET_ERRNO | EPERM);
    }
    give(SECCOMP_RET_ALLOW);
  }

  /** Lets `call` pass with this word in its sixth register, which the kernel does not read. */
  void onlyWith(long call, uint64_t word) {
    const size_t at = offsetof(seccomp_data, args) + 8 * 5;
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 6));
    load(at);
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(word), 0, 3));
    load(at + 4);
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(word >> 32), 0, 1));
    give(SECCOMP_RET_ALLOW);
    give(SECCOMP_RET_ERRNO | EPERM);
  }

  /** Without the mitigation that some kernels add to filtered processes and that costs a tenth of their speed. */
  void enforce() {
    give(SECCOMP_RET_ALLOW);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0) return;
    // A kernel before 4.17 does not know the flag.
    if (errno != EINVAL || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
      fail("cannot filter system calls");
  }

 private:
  void load(size_t at) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(at))); }
  void number() { load(offsetof(seccomp_data, nr)); }
  void give(uint32_t verdict) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, verdict)); }
  void unless(uint32_t value, uint32_t verdict) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
    give(verdict);
  }

  std::vector<sock_filter> code_;
};

bool hasFilters() {
  // An action that the kernel does not know would be an error of another kind.
  const uint32_t action = SECCOMP_RET_ERRNO;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

struct Options {
  bool programs = false, io_uring = false, packets = false;
};

void filterCalls(const Options &options, uint64_t word) {
  Filter filter;
  for (const long call : kNever) filter.refuse(call);
  // The program keeps the number of this process.
  const auto self = static_cast<uint32_t>(getpid());
  for (const long call : kSignals) filter.only(call, 0, {self}, BPF_JEQ, EPERM);
  for (const long call : kOtherSignals) filter.refuse(call);
  filter.never(SYS_fcntl, 1, {std::begin(kOwners), std::end(kOwners)});
  filter.never(SYS_ioctl, 1, {std::begin(kOwnersByIoctl), std::end(kOwnersByIoctl)});
  // Limits of others: one of CPU time ends a process.
  filter.only(SYS_prlimit64, 0, {0, self}, BPF_JEQ, EPERM);
  if (!options.io_uring)
    for (const long call : kOfRings) filter.refuse(call);
  if (!options.programs) {
    for (const long call : kOfProcesses) filter.refuse(call);
    // Its flags lie in memory, where a filter does not see them; glibc then takes clone.
    filter.refuse(SYS_clone3, ENOSYS);
    filter.only(SYS_clone, 0, {CLONE_THREAD}, BPF_JSET, EPERM);
    filter.onlyWith(SYS_execve, word);
    filter.onlyWith(SYS_execveat, word);
  }
  std::vector<uint32_t> families(std::begin(kFamilies), std::end(kFamilies));
  if (options.packets) families.push_back(AF_PACKET);
  filter.only(SYS_socket, 0, families, BPF_JEQ, EAFNOSUPPORT);
  filter.enforce();
}

}  // namespace

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--check") == 0)
    return printf("{\"landlock\":%d,\"seccomp\":%s}\n", landlockVersion(), hasFilters() ? "true" : "false") < 0;
  const Files files(landlockVersion());
  Options options;
  int at = 1;
  for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
    const auto is = [&](const char *name) { return strcmp(argv[at], name) == 0; };
    const auto path = [&] {
      if (at + 1 == argc) errno = EINVAL, fail("no path after", argv[at]);
      return argv[++at];
    };
    if (is("--read")) files.allow(path(), kRead);
    else if (is("--write")) files.allow(path(), kWrite);
    else if (is("--sockets")) files.allow(path(), kMakeSock | kRemoveFile);
    else if (is("--run")) files.allow(path(), kRead | kExecute);
    else if (is("--programs")) options.programs = true;
    else if (is("--io-uring")) options.io_uring = true;
    else if (is("--packets")) options.packets = true;
    else errno = EINVAL, fail("unknown word", argv[at]);
  }
  if (at + 1 >= argc) errno = EINVAL, fail("no command");
  char **command = argv + at + 1;
  if (const char *path = loader()) files.allow(path, kRead | kExecute);
  files.allow("/dev/null", kReadFile | kWriteFile | kTruncate);
  // Nobody guesses this word: it lies in memory that the program replaces.
  uint64_t word = 0;
  if (getrandom(&word, sizeof word, 0) != sizeof word) fail("no random number");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
  files.enforce();
  if (hasFilters()) filterCalls(options, word);
  if (options.programs) execvp(command[0], command);
  else syscall(SYS_execve, command[0], command, environ, 0, 0, word);
  fail("cannot run", command[0]);
}
