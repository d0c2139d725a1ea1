/* Namespaces, an empty root and another user are taken where they can be had: as root they can; as
 * an ordinary user they can where user namespaces are allowed; in a container commonly not. The
 * system call filter is what holds everywhere: there is no call left that opens, connects,
 * starts, traces, signals another process or reads its memory. The others are a second wall, should
 * the filter have a hole.
 *
 * Calls the engine makes out of habit and can do without get an error instead of death: opening
 * time zone files, asking the scheduler, starting helper threads the usual way (clone3, whose
 * arguments a filter cannot see) . */
#include "script/worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, NICENESS = 10, NICENESS_LAST = 19 };

static bool limit(int resource, rlim_t value)
{
    struct rlimit both = {value, value};

    return setrlimit(resource, &both) == 0;
}

/* All descriptors but the socket, whatever the server forgot to close. */
static bool descriptors_close(void)
{
    int memory;

    if (fcntl(SANDBOX_SOCKET, F_GETFD) < 0 || close_range(SANDBOX_SOCKET + 1, ~0u, 0) != 0)
        return false;
    memory = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (memory >= 0 && memory != SANDBOX_MEMORY)
        errno = EBADF; /* one of 0, 1 and 2 was not open */
    return memory == SANDBOX_MEMORY;
}

static bool namespaces_leave(void)
{
    int kinds = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS;

    return unshare(kinds) == 0 || unshare(CLONE_NEWUSER | kinds) == 0;
}

/* A process that shares our root makes a directory of its own in /proc the root, and ends: the
 * directory stays, empty for good, and nothing can be made in it. */
static int root_child(void *unused UNUSED)
{
    if (chroot("/proc/self/fdinfo") != 0 || chdir("/") != 0)
        _exit(1);
    _exit(0);
}

static bool root_leave(void)
{
    static uint8_t stack[64 * 1024] __attribute__((aligned(16)));
    int status;
    pid_t child = clone(root_child, stack + sizeof stack, CLONE_FS | SIGCHLD, NULL);

    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && access("/proc", F_OK) != 0;
}

/* Root becomes nobody. In a user namespace of our own there is no other user to become. */
static bool user_leave(void)
{
    if (geteuid() != 0 || setgroups(0, NULL) != 0)
        return false;
    return setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0;
}

static bool capabilities_drop(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

    return syscall(SYS_capset, &header, none) == 0;
}

bool sandbox_enter(unsigned *hidden)
{
    /* The server's end of the socket closes with it, but a script in a loop does not read it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || !descriptors_close())
        return false;
    if (namespaces_leave())
        *hidden |= SANDBOX_NAMESPACES;
    /* Where scripts and the server want the same processor the server goes first. */
    if (setpriority(PRIO_PROCESS, 0, NICENESS) != 0)
        return false;
    return limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NOFILE, 16) &&
           limit(RLIMIT_MEMLOCK, 0) && limit(RLIMIT_MSGQUEUE, 0);
}

bool sandbox_leave(unsigned *hidden)
{
    if (root_leave())
        *hidden |= SANDBOX_ROOT;
    if (user_leave())
        *hidden |= SANDBOX_USER;
    if (!capabilities_drop() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    /* A change of user forgets the death signal. */
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0;
}

static uint64_t statm_field(unsigned number)
{
    char text[128];
    ssize_t len = pread(SANDBOX_MEMORY, text, sizeof text - 1, 0);
    uint64_t value = 0;

    if (len <= 0)
        return 0;
    text[len] = 0;
    for (const char *at = text; *at; at++) {
        if (*at == ' ') {
            if (number-- == 0)
                break;
            value = 0;
        } else if (*at >= '0' && *at <= '9') {
            value = value * 10 + (uint64_t)(*at - '0');
        }
    }
    return value * (uint64_t)sysconf(_SC_PAGESIZE);
}

void sandbox_give_way(void)
{
    (void)setpriority(PRIO_PROCESS, 0, NICENESS_LAST); /* where it fails it stays as it was */
}

uint64_t sandbox_memory_used(void)
{
    return statm_field(1);
}

static const int calls_allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(futex),
    SCMP_SYS(munmap),
    SCMP_SYS(madvise),
    SCMP_SYS(mremap),
    SCMP_SYS(brk),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(sched_yield),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(getrandom),
    SCMP_SYS(rt_sigsuspend),
    SCMP_SYS(pread64),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(sysinfo),
    SCMP_SYS(getrusage),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(restart_syscall),
};

/* What the engine does without when told it cannot. */
static const struct {
    int call;
    int error;
} calls_refused[] = {
    {SCMP_SYS(openat), EACCES},
    {SCMP_SYS(newfstatat), EACCES},
    {SCMP_SYS(clone3), ENOSYS},
    {SCMP_SYS(clone), EAGAIN},
    {SCMP_SYS(readlink), EACCES},
    {SCMP_SYS(access), EACCES},
    {SCMP_SYS(prctl), EPERM},
    {SCMP_SYS(prlimit64), EPERM},
    {SCMP_SYS(sched_getaffinity), EPERM},
    {SCMP_SYS(sched_setscheduler), EPERM},
    {SCMP_SYS(membarrier), ENOSYS},
};

/* Memory may be had but never made executable: without a compiler of its own the engine needs no
 * code it has written. A signal may go only to ourselves, and of priorities we may take the last.
 */
static bool calls_checked(scmp_filter_ctx filter)
{
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                            SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                            SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                            SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid())) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(setpriority), 3,
                            SCMP_A0(SCMP_CMP_EQ, PRIO_PROCESS), SCMP_A1(SCMP_CMP_EQ, 0),
                            SCMP_A2(SCMP_CMP_EQ, NICENESS_LAST)) == 0;
}

static bool calls_close(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    bool fine = filter && seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0;

    for (size_t i = 0; fine && i < ARRAY_LEN(calls_allowed); i++)
        fine = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls_allowed[i], 0) == 0;
    for (size_t i = 0; fine && i < ARRAY_LEN(calls_refused); i++)
        fine = seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint16_t)calls_refused[i].error),
                                calls_refused[i].call, 0) == 0;
    fine = fine && calls_checked(filter) && seccomp_load(filter) == 0;
    seccomp_release(filter);
    return fine;
}

bool sandbox_close(uint64_t memory_bytes)
{
    uint64_t now = statm_field(0);

    /* The address space is the harder limit of the two, and gets a half more: pieces that are
     * reserved and never touched count here as well. */
    if (!now || !limit(RLIMIT_AS, now + memory_bytes + memory_bytes / 2))
        return false;
    return calls_close();
}
