// The border between C++ and the C interface: no exception passes it.
#pragma once

#include <exception>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "../ndarray/failure.h"
#include "failure.hpp"

namespace sn {

// Runs body and turns whatever it throws into a status and a message.
template <class Body>
sn_status guarded(Body&& body) noexcept {
    try {
        std::forward<Body>(body)();
        return SN_OK;
    } catch (const Failure& failure) {
        return sn_fail(failure.status, "%s", failure.what());
    } catch (const std::bad_alloc&) {
        return sn_fail(SN_ERROR_MEMORY, "there is no memory for this");
    } catch (const dnnl::error& error) {
        const bool memory = error.status == dnnl_out_of_memory;
        return sn_fail(memory ? SN_ERROR_MEMORY : SN_ERROR_INTERNAL, "oneDNN: %s", error.what());
    } catch (const std::exception& error) {
        return sn_fail(SN_ERROR_INTERNAL, "%s", error.what());
    } catch (...) {
        return sn_fail(SN_ERROR_INTERNAL, "an unknown error");
    }
}

}  // namespace sn
