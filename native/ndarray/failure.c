#include "failure.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[1024];

const char* sn_message(void) {
    return message;
}

sn_status sn_fail(sn_status code, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return code;
}
