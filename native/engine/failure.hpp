// Errors that have a status of their own.
#pragma once

#include <sparknet/status.h>

#include <stdexcept>
#include <string>

namespace sn {

class Failure : public std::runtime_error {
   public:
    Failure(sn_status code, const std::string& message)
        : std::runtime_error(message), status(code) {}

    const sn_status status;
};

}  // namespace sn
