/* The second half of the escape suite: what is left to whoever has taken the engine over and can
 * make any system call. Each attempt is a process of its own that goes through the worker's three
 * steps and then tries; it must be refused or die, and never get what it wants. */
#include "script/worker/sandbox.h"

#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GOT_IT = 1,      /* the attempt succeeded */
    REFUSED = 2,     /* an error came back */
    NOT_CLOSED = 99, /* the sandbox itself did not work */
};

enum { MEMORY = 16 << 20 };

static int outside = -1; /* a descriptor of the server's */
static int secret = 42;  /* and memory of it */

/* Runs the attempt behind the sandbox; gives the exit code, or minus the signal. */
static int behind(long (*attempt)(void))
{
    int status, ends[2];
    pid_t child;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        unsigned hidden = 0;

        if (dup2(ends[1], SANDBOX_SOCKET) != SANDBOX_SOCKET || !sandbox_enter(&hidden) ||
            !sandbox_leave(&hidden) || !sandbox_close(MEMORY))
            _exit(NOT_CLOSED);
        _exit(attempt() >= 0 ? GOT_IT : REFUSED);
    }
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

#define ATTEMPT(name, ...)                                                                         \
    static long name(void)                                                                         \
    {                                                                                              \
        return syscall(__VA_ARGS__);                                                               \
    }

static struct iovec here = {&secret, sizeof secret}, there = {&secret, sizeof secret};

ATTEMPT(try_nothing, SYS_getpid)
ATTEMPT(try_open, SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY)
ATTEMPT(try_open_old, SYS_open, "/etc/passwd", O_RDONLY)
ATTEMPT(try_open_new, SYS_openat2, AT_FDCWD, "/etc/passwd", NULL, 0)
ATTEMPT(try_creat, SYS_creat, "/tmp/x", 0600)
ATTEMPT(try_stat, SYS_newfstatat, AT_FDCWD, "/etc/passwd", NULL, 0)
ATTEMPT(try_unlink, SYS_unlink, "/etc/passwd")
ATTEMPT(try_chdir, SYS_chdir, "/")
ATTEMPT(try_outside, SYS_read, outside, NULL, 0)
ATTEMPT(try_socket, SYS_socket, AF_INET, SOCK_STREAM, 0)
ATTEMPT(try_socketpair, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, NULL)
ATTEMPT(try_connect, SYS_connect, SANDBOX_SOCKET, NULL, 0)
ATTEMPT(try_sendmsg, SYS_sendmsg, SANDBOX_SOCKET, NULL, 0)
ATTEMPT(try_recvmsg, SYS_recvmsg, SANDBOX_SOCKET, NULL, 0)
ATTEMPT(try_fork, SYS_fork)
ATTEMPT(try_vfork, SYS_vfork)
ATTEMPT(try_clone, SYS_clone, SIGCHLD, NULL, NULL, NULL, 0)
ATTEMPT(try_clone3, SYS_clone3, NULL, 0)
ATTEMPT(try_execve, SYS_execve, "/bin/sh", NULL, NULL)
ATTEMPT(try_execveat, SYS_execveat, AT_FDCWD, "/bin/sh", NULL, NULL, 0)
ATTEMPT(try_ptrace, SYS_ptrace, PTRACE_ATTACH, getppid(), NULL, NULL)
ATTEMPT(try_read_memory, SYS_process_vm_readv, getppid(), &here, 1, &there, 1, 0)
ATTEMPT(try_write_memory, SYS_process_vm_writev, getppid(), &here, 1, &there, 1, 0)
ATTEMPT(try_kill, SYS_kill, -1, 0)
ATTEMPT(try_tgkill, SYS_tgkill, 1, 1, 0)
ATTEMPT(try_tkill, SYS_tkill, 1, 0)
ATTEMPT(try_pidfd, SYS_pidfd_open, 1, 0)
ATTEMPT(try_code, SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
ATTEMPT(try_protect, SYS_mprotect, NULL, 4096, PROT_READ | PROT_EXEC)
ATTEMPT(try_key_protect, SYS_pkey_mprotect, NULL, 4096, PROT_EXEC, -1)
ATTEMPT(try_memfd, SYS_memfd_create, "x", MFD_CLOEXEC)
ATTEMPT(try_dup, SYS_dup, SANDBOX_SOCKET)
ATTEMPT(try_shm, SYS_shmget, 1, 4096, 01600)
ATTEMPT(try_ring, SYS_io_uring_setup, 1, NULL)
ATTEMPT(try_bpf, SYS_bpf, 0, NULL, 0)
ATTEMPT(try_faults, SYS_userfaultfd, 0)
ATTEMPT(try_events, SYS_perf_event_open, NULL, 0, 0, 0, 0)
ATTEMPT(try_unshare, SYS_unshare, CLONE_NEWUSER)
ATTEMPT(try_mount, SYS_mount, "x", "/", "tmpfs", 0, NULL)
ATTEMPT(try_root, SYS_chroot, "/")
ATTEMPT(try_user, SYS_setuid, 0)
ATTEMPT(try_limit, SYS_prlimit64, 0, RLIMIT_AS, NULL, NULL)
ATTEMPT(try_prctl, SYS_prctl, PR_SET_DUMPABLE, 1)
ATTEMPT(try_priority, SYS_setpriority, PRIO_PROCESS, 0, -5)
ATTEMPT(try_priority_of_all, SYS_setpriority, PRIO_USER, 0, 19)
ATTEMPT(try_keys, SYS_add_key, "user", "x", "x", 1, 0)
ATTEMPT(try_module, SYS_init_module, NULL, 0, "")
ATTEMPT(try_reboot, SYS_reboot, 0, 0, 0, NULL)
ATTEMPT(try_ioctl, SYS_ioctl, SANDBOX_SOCKET, 0, NULL)

static const struct {
    const char *what;
    long (*attempt)(void);
} attempts[] = {
    {"open a file", try_open},
    {"open a file the old way", try_open_old},
    {"open a file the new way", try_open_new},
    {"create a file", try_creat},
    {"look at a file", try_stat},
    {"remove a file", try_unlink},
    {"change the directory", try_chdir},
    {"use a descriptor of the server", try_outside},
    {"make a socket", try_socket},
    {"make a pair of sockets", try_socketpair},
    {"connect", try_connect},
    {"send a descriptor", try_sendmsg},
    {"receive a descriptor", try_recvmsg},
    {"fork", try_fork},
    {"vfork", try_vfork},
    {"clone", try_clone},
    {"clone the new way", try_clone3},
    {"execute", try_execve},
    {"execute by descriptor", try_execveat},
    {"trace the server", try_ptrace},
    {"read the server's memory", try_read_memory},
    {"write the server's memory", try_write_memory},
    {"signal all", try_kill},
    {"signal another by thread", try_tgkill},
    {"signal another the old way", try_tkill},
    {"hold another process", try_pidfd},
    {"map code", try_code},
    {"make memory code", try_protect},
    {"make memory code by key", try_key_protect},
    {"make a file in memory", try_memfd},
    {"double a descriptor", try_dup},
    {"share memory", try_shm},
    {"make a ring", try_ring},
    {"load a filter", try_bpf},
    {"handle faults", try_faults},
    {"watch events", try_events},
    {"make a namespace", try_unshare},
    {"mount", try_mount},
    {"change the root", try_root},
    {"become root", try_user},
    {"raise a limit", try_limit},
    {"become traceable", try_prctl},
    {"raise its priority", try_priority},
    {"lower the priority of others", try_priority_of_all},
    {"keep a key", try_keys},
    {"load a module", try_module},
    {"restart the machine", try_reboot},
    {"control a device", try_ioctl},
};

static void a_process_that_only_computes_goes_on(void **state UNUSED)
{
    assert_int_equal(behind(try_nothing), GOT_IT);
}

static void every_way_out_is_refused_or_deadly(void **state UNUSED)
{
    int zero = open("/dev/zero", O_RDONLY);

    outside = fcntl(zero, F_DUPFD, SANDBOX_MEMORY + 10);
    close(zero);
    assert_true(outside > SANDBOX_MEMORY);
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
        int end = behind(attempts[i].attempt);

        if (end != REFUSED && end != -SIGSYS)
            fail_msg("an attempt to %s ended with %d", attempts[i].what, end);
    }
    close(outside);
    assert_int_equal(secret, 42);
}

static long use_memory(void)
{
    for (int i = 0; i < 64; i++) {
        if (mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
            MAP_FAILED)
            return -1;
    }
    return 0;
}

static void memory_ends_at_its_limit(void **state UNUSED)
{
    assert_int_equal(behind(use_memory), REFUSED);
}

/* Without the system call filter, which the steps before it do not rely on. */
static void files_are_out_of_sight_before_calls_are(void **state UNUSED)
{
    int status, ends[2];
    pid_t child;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    child = fork();
    if (child == 0) {
        unsigned hidden = 0;

        if (dup2(ends[1], SANDBOX_SOCKET) != SANDBOX_SOCKET || !sandbox_enter(&hidden) ||
            !sandbox_leave(&hidden))
            _exit(NOT_CLOSED);
        if ((hidden & SANDBOX_ROOT) && (access("/etc", F_OK) == 0 || access("/tmp", F_OK) == 0))
            _exit(GOT_IT);
        if (hidden & SANDBOX_USER && (getuid() == 0 || setuid(0) == 0))
            _exit(GOT_IT);
        if (prctl(PR_GET_DUMPABLE) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
            _exit(GOT_IT);
        _exit(REFUSED);
    }
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_only_computes_goes_on),
        cmocka_unit_test(every_way_out_is_refused_or_deadly),
        cmocka_unit_test(memory_ends_at_its_limit),
        cmocka_unit_test(files_are_out_of_sight_before_calls_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
