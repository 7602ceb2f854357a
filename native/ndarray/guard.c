/*
 * Memory of files that others may cut short, or whose disk may fail: what is lost reads as zeros,
 * and its owner can ask whether something was lost. Without this, touching it ends the process.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sparknet/transform.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 4096 };

/* `begin` is written last and cleared first: the signal's handler reads it first. */
static struct range {
    _Atomic uintptr_t begin;
    _Atomic uintptr_t end;
    _Atomic bool lost;
    bool taken;
} ranges[MOST];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static uintptr_t page;
static bool installed;

/* Zeros from the page at `at` to the end of its range: a file loses its tail. */
static bool cover(uintptr_t at) {
    for (int i = 0; i < MOST; ++i) {
        struct range* range = &ranges[i];
        const uintptr_t begin = atomic_load(&range->begin), end = atomic_load(&range->end);
        if (begin == 0 || at < begin || at >= end) continue;
        const uintptr_t from = at - at % page;
        atomic_store(&range->lost, true);
        return mmap((void*)from, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                    0) != MAP_FAILED;
    }
    return false;
}

static void on_lost_page(int number, siginfo_t* info, void* context) {
    const int kept = errno;
    const bool covered = info->si_code > 0 && cover((uintptr_t)info->si_addr);
    errno = kept;
    if (covered) return;
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        /* It happens again when this returns, and then does what it always did. */
        signal(number, SIG_DFL);
        if (info->si_code <= 0) raise(number);
    }
}

static void install(void) {
    struct sigaction action = {.sa_sigaction = on_lost_page, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    page = (uintptr_t)sysconf(_SC_PAGESIZE);
    installed = sigaction(SIGBUS, &action, &before) == 0;
}

int sn_guard_pages(const void* memory, int64_t size) {
    int number = -1;
    pthread_mutex_lock(&lock);
    if (!installed) install();
    for (int i = 0; i < MOST && number < 0 && installed; ++i)
        if (!ranges[i].taken) number = i;
    if (number >= 0) {
        struct range* range = &ranges[number];
        range->taken = true;
        atomic_store(&range->lost, false);
        atomic_store(&range->end, (uintptr_t)memory + (uintptr_t)size);
        atomic_store(&range->begin, (uintptr_t)memory);
    }
    pthread_mutex_unlock(&lock);
    return number;
}

void sn_unguard_pages(int number) {
    if (number < 0 || number >= MOST) return;
    pthread_mutex_lock(&lock);
    atomic_store(&ranges[number].begin, 0);
    ranges[number].taken = false;
    pthread_mutex_unlock(&lock);
}

int sn_pages_lost(int number) {
    return number >= 0 && number < MOST && atomic_load(&ranges[number].lost);
}
