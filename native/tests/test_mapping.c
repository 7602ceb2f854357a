/* Files as storage. */
#include <string.h>
#include <unistd.h>

#include "expect.h"

static char path[] = "sparknet-mapping-XXXXXX";

static void map_as(sn_array** out, sn_map_mode mode, int64_t count, int64_t offset) {
    SUCCEEDS(sn_array_map(out, path, SN_FLOAT32, 1, SHAPE(count), mode, offset));
}

static void modes(void) {
    sn_array *shared, *reader, *copy;
    map_as(&shared, SN_MAP_CREATE, 5000, 0);
    map_as(&reader, SN_MAP_READ, 4000, 4000);
    map_as(&copy, SN_MAP_COPY, 5000, 0);
    SUCCEEDS(sn_array_set(shared, SHAPE(1000), 7));
    EXPECT(element(reader, SHAPE(0)) == 7);
    SUCCEEDS(sn_array_fill(copy, 3));
    EXPECT(element(reader, SHAPE(0)) == 7);
    EXPECT(sn_array_fill(reader, 1) == SN_ERROR_ARRAY);
    SUCCEEDS(sn_array_flush(shared));
    sn_array_free(shared);
    sn_array_free(reader);
    sn_array_free(copy);
}

static void refusals(void) {
    sn_array* out = NULL;
    EXPECT(sn_array_map(&out, path, SN_FLOAT32, 1, SHAPE(5001), SN_MAP_READ, 0) == SN_ERROR_FILE);
    EXPECT(strstr(sn_message(), "holds 20000 bytes where 20004 are needed") != NULL);
    EXPECT(sn_array_map(&out, path, SN_FLOAT32, 1, SHAPE(1), SN_MAP_READ, 2) == SN_ERROR_ARRAY);
    EXPECT(sn_array_map(&out, path, SN_FLOAT32, 1, SHAPE(1), SN_MAP_READ, -4) == SN_ERROR_FILE);
    EXPECT(sn_array_map(&out, path, SN_UINT8, 1, SHAPE(1), SN_MAP_READ, INT64_MAX) ==
           SN_ERROR_FILE);
    EXPECT(sn_array_map(&out, "/", SN_UINT8, 1, SHAPE(1), SN_MAP_READ, 0) == SN_ERROR_FILE);
    EXPECT(sn_array_map(&out, "not there", SN_UINT8, 1, SHAPE(1), SN_MAP_READ, 0) == SN_ERROR_FILE);
    EXPECT(out == NULL);
}

int main(void) {
    const int file = mkstemp(path);
    EXPECT(file >= 0 && close(file) == 0);
    modes();
    refusals();
    EXPECT(unlink(path) == 0);
    EXPECT(sn_live_storages() == 0);
    return 0;
}
