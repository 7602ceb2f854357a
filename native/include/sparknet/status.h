/*
 * How every call of the tensor core ends.
 *
 * A function that can fail returns an sn_status and gives its results through
 * its first arguments. When the status is not SN_OK, those results are
 * untouched and sn_message() says what went wrong, in one sentence.
 */
#ifndef SPARKNET_STATUS_H
#define SPARKNET_STATUS_H

#define SN_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sn_status {
    SN_OK = 0,
    /* A shape, dtype, layout or setting that does not fit; a write to read-only memory. */
    SN_ERROR_ARRAY = 1,
    /* An index or a range outside an array. */
    SN_ERROR_INDEX = 2,
    /* Memory could not be allocated. */
    SN_ERROR_MEMORY = 3,
    /* A file that is missing, too short or not accessible. The caller puts its name before the
       message. */
    SN_ERROR_FILE = 4,
    /* Anything else, such as an error of oneDNN's. */
    SN_ERROR_INTERNAL = 5,
    /* A layer refuses its input: sn_net_failed_layer says which; the message is about the rest. */
    SN_ERROR_LAYER = 6
} sn_status;

/*
 * The message of the last call that failed in this thread, or "" when none has.
 * The text is the library's; it stays valid until the next failure in this thread.
 */
SN_API const char* sn_message(void);

#ifdef __cplusplus
}
#endif

#endif
