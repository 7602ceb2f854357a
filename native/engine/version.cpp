#include <oneapi/dnnl/dnnl.h>
#include <sparknet/engine.h>

const char* sn_version(void) {
    return SPARKNET_VERSION;
}

void sn_onednn_version(int* major, int* minor, int* patch) {
    const dnnl_version_t* version = dnnl_version();
    *major = version->major;
    *minor = version->minor;
    *patch = version->patch;
}
