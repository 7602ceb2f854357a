// CRC-32C, the check sum in LevelDB's files (RFC 3720, section 12.1), eight bytes at a time.
#include <sparknet/transform.h>

#include <array>
#include <cstddef>

namespace {

constexpr uint32_t polynomial = 0x82F63B78;

// What a byte adds when 0 to 7 more follow it.
constexpr auto tables = [] {
    std::array<std::array<uint32_t, 256>, 8> out{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? polynomial : 0);
        out[0][byte] = sum;
    }
    for (size_t more = 1; more < out.size(); ++more)
        for (uint32_t byte = 0; byte < 256; ++byte) {
            const uint32_t before = out[more - 1][byte];
            out[more][byte] = out[0][before & 0xFF] ^ before >> 8;
        }
    return out;
}();

}  // namespace

uint32_t sn_crc32c(const uint8_t* in, int64_t size) {
    uint32_t sum = 0xFFFFFFFF;
    for (; size >= 8; in += 8, size -= 8) {
        uint32_t next = 0;
        for (size_t i = 0; i < 4; ++i) {
            next ^= tables[7 - i][in[i] ^ (sum >> 8 * i & 0xFF)];
            next ^= tables[3 - i][in[4 + i]];
        }
        sum = next;
    }
    for (; size > 0; ++in, --size) sum = tables[0][(sum ^ *in) & 0xFF] ^ sum >> 8;
    return ~sum;
}
