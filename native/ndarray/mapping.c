/* Storage that is a part of a file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "storage.h"

static sn_status file_error(const char* deed) {
    return sn_fail(SN_ERROR_FILE, "cannot %s: %s", deed, strerror(errno));
}

static int open_flags(sn_map_mode mode) {
    switch (mode) {
        case SN_MAP_SHARED:
            return O_RDWR | O_CLOEXEC;
        case SN_MAP_CREATE:
            return O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
        default:
            /* A pipe without a writer must not make the caller wait. */
            return O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    }
}

/* Makes the file that long; where the system can, its blocks are there before they are written. */
static int reserve(int file, int64_t end) {
#if defined(__APPLE__)
    return ftruncate(file, end) == 0 ? 0 : errno;
#else
    return posix_fallocate(file, 0, end);
#endif
}

/* Makes sure that the file reaches to `end`: by looking, or in mode CREATE by growing it. */
static sn_status check_size(int file, sn_map_mode mode, int64_t end) {
    struct stat facts;
    if (fstat(file, &facts) != 0) return file_error("look at it");
    if (!S_ISREG(facts.st_mode)) return sn_fail(SN_ERROR_FILE, "is not a regular file");
    if (mode == SN_MAP_CREATE) {
        errno = end > 0 ? reserve(file, end) : 0;
        return errno == 0 ? SN_OK : file_error("make it large enough");
    }
    if (facts.st_size < end)
        return sn_fail(SN_ERROR_FILE, "holds %lld bytes where %lld are needed",
                       (long long)facts.st_size, (long long)end);
    return SN_OK;
}

static sn_status map_pages(sn_storage* storage, int file, sn_map_mode mode, int64_t offset) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const size_t lead = (size_t)(offset % page);
    const bool shared = mode == SN_MAP_SHARED || mode == SN_MAP_CREATE;
    storage->readonly = mode == SN_MAP_READ;
    storage->shared = shared;
    if (storage->bytes == 0) {
        storage->base = (char*)storage;
        return SN_OK;
    }
    const int protection = mode == SN_MAP_READ ? PROT_READ : PROT_READ | PROT_WRITE;
    void* pages = mmap(NULL, storage->bytes + lead, protection, shared ? MAP_SHARED : MAP_PRIVATE,
                       file, offset - (int64_t)lead);
    if (pages == MAP_FAILED) return file_error("map it");
    storage->mapping = pages;
    storage->mapping_bytes = storage->bytes + lead;
    storage->base = (char*)pages + lead;
    return SN_OK;
}

sn_status sn_storage_map(sn_storage** out, const char* path, size_t bytes, sn_map_mode mode,
                         int64_t offset) {
    int64_t end;
    if (offset < 0 || bytes > INT64_MAX / 2 || __builtin_add_overflow(offset, (int64_t)bytes, &end))
        return sn_fail(SN_ERROR_FILE, "has no room for %zu bytes at offset %lld", bytes,
                       (long long)offset);
    const int file = open(path, open_flags(mode), 0666);
    if (file < 0) return file_error("open it");
    sn_status status = check_size(file, mode, end);
    sn_storage* storage = status == SN_OK ? sn_storage_blank() : NULL;
    if (storage != NULL) {
        storage->bytes = bytes;
        status = map_pages(storage, file, mode, offset);
        if (status == SN_OK)
            *out = storage;
        else
            sn_storage_drop(storage);
    } else if (status == SN_OK) {
        status = sn_fail(SN_ERROR_MEMORY, "there is no memory for an array");
    }
    close(file);
    return status;
}

sn_status sn_storage_flush(const sn_storage* storage) {
    if (!storage->shared || storage->mapping == NULL) return SN_OK;
    if (msync(storage->mapping, storage->mapping_bytes, MS_SYNC) == 0) return SN_OK;
    return file_error("write it");
}
