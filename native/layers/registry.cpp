// The layer types that the engine computes: one declaration and one line each.
#include <map>

#include "../engine/layer.hpp"

namespace sn {

std::unique_ptr<Kernel> make_absval();
std::unique_ptr<Kernel> make_accuracy();
std::unique_ptr<Kernel> make_argmax();
std::unique_ptr<Kernel> make_axpy();
std::unique_ptr<Kernel> make_batch_norm();
std::unique_ptr<Kernel> make_bias();
std::unique_ptr<Kernel> make_bnll();
std::unique_ptr<Kernel> make_clip();
std::unique_ptr<Kernel> make_contrastive_loss();
std::unique_ptr<Kernel> make_convolution();
std::unique_ptr<Kernel> make_deconvolution();
std::unique_ptr<Kernel> make_detection_output();
std::unique_ptr<Kernel> make_dropout();
std::unique_ptr<Kernel> make_eltwise();
std::unique_ptr<Kernel> make_elu();
std::unique_ptr<Kernel> make_euclidean_loss();
std::unique_ptr<Kernel> make_exp();
std::unique_ptr<Kernel> make_hinge_loss();
std::unique_ptr<Kernel> make_host();
std::unique_ptr<Kernel> make_im2col();
std::unique_ptr<Kernel> make_infogain_loss();
std::unique_ptr<Kernel> make_inner_product();
std::unique_ptr<Kernel> make_input();
std::unique_ptr<Kernel> make_log();
std::unique_ptr<Kernel> make_lrn();
std::unique_ptr<Kernel> make_multibox_loss();
std::unique_ptr<Kernel> make_multinomial_logistic_loss();
std::unique_ptr<Kernel> make_mvn();
std::unique_ptr<Kernel> make_normalize();
std::unique_ptr<Kernel> make_parameter();
std::unique_ptr<Kernel> make_pooling();
std::unique_ptr<Kernel> make_power();
std::unique_ptr<Kernel> make_prelu();
std::unique_ptr<Kernel> make_prior_box();
std::unique_ptr<Kernel> make_relu();
std::unique_ptr<Kernel> make_relu6();
std::unique_ptr<Kernel> make_scale();
std::unique_ptr<Kernel> make_sigmoid();
std::unique_ptr<Kernel> make_sigmoid_cross_entropy_loss();
std::unique_ptr<Kernel> make_silence();
std::unique_ptr<Kernel> make_smooth_l1_loss();
std::unique_ptr<Kernel> make_softmax();
std::unique_ptr<Kernel> make_softmax_with_loss();
std::unique_ptr<Kernel> make_split();
std::unique_ptr<Kernel> make_spp();
std::unique_ptr<Kernel> make_swish();
std::unique_ptr<Kernel> make_tanh();
std::unique_ptr<Kernel> make_threshold();

const std::map<std::string, Factory>& kernels() {
    static const std::map<std::string, Factory> all = {
        {"AbsVal", make_absval},
        {"Accuracy", make_accuracy},
        {"ArgMax", make_argmax},
        {"Axpy", make_axpy},
        {"BatchNorm", make_batch_norm},
        {"Bias", make_bias},
        {"BNLL", make_bnll},
        {"Clip", make_clip},
        {"ContrastiveLoss", make_contrastive_loss},
        {"Convolution", make_convolution},
        {"Deconvolution", make_deconvolution},
        {"DepthwiseConvolution", make_convolution},
        {"DetectionOutput", make_detection_output},
        {"Dropout", make_dropout},
        {"Eltwise", make_eltwise},
        {"ELU", make_elu},
        {"EuclideanLoss", make_euclidean_loss},
        {"Exp", make_exp},
        {"HingeLoss", make_hinge_loss},
        {"Host", make_host},
        {"Im2col", make_im2col},
        {"InfogainLoss", make_infogain_loss},
        {"InnerProduct", make_inner_product},
        {"Input", make_input},
        {"Log", make_log},
        {"LRN", make_lrn},
        {"MultiBoxLoss", make_multibox_loss},
        {"MultinomialLogisticLoss", make_multinomial_logistic_loss},
        {"MVN", make_mvn},
        {"Normalize", make_normalize},
        {"Parameter", make_parameter},
        {"Pooling", make_pooling},
        {"Power", make_power},
        {"PReLU", make_prelu},
        {"PriorBox", make_prior_box},
        {"ReLU", make_relu},
        {"ReLU6", make_relu6},
        {"Scale", make_scale},
        {"Sigmoid", make_sigmoid},
        {"SigmoidCrossEntropyLoss", make_sigmoid_cross_entropy_loss},
        {"Silence", make_silence},
        {"SmoothL1Loss", make_smooth_l1_loss},
        {"Softmax", make_softmax},
        {"SoftmaxWithLoss", make_softmax_with_loss},
        {"Split", make_split},
        {"SPP", make_spp},
        {"Swish", make_swish},
        {"TanH", make_tanh},
        {"Threshold", make_threshold},
    };
    return all;
}

}  // namespace sn
