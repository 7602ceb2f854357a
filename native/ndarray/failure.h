/* The one way to fail: sets the code and the message together. */
#ifndef SPARKNET_FAILURE_H
#define SPARKNET_FAILURE_H

#include <sparknet/status.h>

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((format(printf, 2, 3))) sn_status sn_fail(sn_status code, const char* format, ...);

#ifdef __cplusplus
}
#endif

#endif
