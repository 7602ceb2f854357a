// The layer types that the engine computes: one declaration and one line each.
#include <map>

#include "../engine/layer.hpp"

namespace sn {

std::unique_ptr<Kernel> make_convolution();
std::unique_ptr<Kernel> make_deconvolution();
std::unique_ptr<Kernel> make_host();
std::unique_ptr<Kernel> make_input();
std::unique_ptr<Kernel> make_parameter();
std::unique_ptr<Kernel> make_inner_product();
std::unique_ptr<Kernel> make_relu();
std::unique_ptr<Kernel> make_split();

const std::map<std::string, Factory>& kernels() {
    static const std::map<std::string, Factory> all = {
        {"Convolution", make_convolution},
        {"Deconvolution", make_deconvolution},
        {"Host", make_host},
        {"Input", make_input},
        {"Parameter", make_parameter},
        {"InnerProduct", make_inner_product},
        {"ReLU", make_relu},
        {"Split", make_split},
    };
    return all;
}

}  // namespace sn
