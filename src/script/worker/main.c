/* orrery-js: the process in which scripts run. The server starts it with a socket as descriptor 3
 * and the bytes of memory a script may use; it is of no use by hand. */
#include "script/worker/sandbox.h"
#include "script/worker/worker.h"

#include <errno.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static struct worker worker;
    uint64_t memory_bytes;
    unsigned hidden = 0;

    if (argc != 2 || !slice_to_uint64(slice_of_text(argv[1]), &memory_bytes)) {
        fprintf(stderr, "orrery-js: started by the server, with a socket\n");
        return 2;
    }
    if (!sandbox_enter(&hidden)) {
        fprintf(stderr, "orrery-js: entering the sandbox: %s\n", strerror(errno));
        return 3;
    }
    worker_init(&worker, SANDBOX_SOCKET);
    if (!sandbox_leave(&hidden)) {
        fprintf(stderr, "orrery-js: leaving the file system: %s\n", strerror(errno));
        return 3;
    }
    if (!worker_warm_up(&worker)) {
        fprintf(stderr, "orrery-js: the engine does not run\n");
        return 4;
    }
    worker.memory_max = worker.engine.memory_max = sandbox_memory_used() + memory_bytes;
    if (!sandbox_close(memory_bytes)) {
        fprintf(stderr, "orrery-js: closing the sandbox: %s\n", strerror(errno));
        return 5;
    }
    worker_serve(&worker, hidden);
    _exit(0); /* the engine is not taken apart: that costs time and may crash */
}
