"""Wrong uses; each line ends with the code of the error that a type checker gives."""

import sparknet
from sparknet import Convolution, Net, NetParams, Poling, SolverParams, caffe  # attr-defined
from sparknet.dsl import Convlution  # attr-defined
from sparknet.loaders import ImageFiles, Paquet  # attr-defined
from sparknet.spark import SparkModel, Trainer, get_session, planning_on  # attr-defined
from sparknet.spark.pipeline import NetEstimator, NetFeaturizer
from sparknet.training import AllReduced  # attr-defined

data = {"data": [1.0], "label": [0.0]}

# misspelt names
sparknet.trian("solver.prototxt", data)  # attr-defined
sparknet.Convolutoin("conv", "data")  # attr-defined
sparknet.models.nett("lenet")  # attr-defined
caffe.Nett("net.prototxt", caffe.TEST)  # attr-defined
Net("net.prototxt").foward(data)  # attr-defined
print(SolverParams(base_lr=0.1).base_rl)  # attr-defined
sparknet.nosuch()  # attr-defined
sparknet.spark.nosuch()  # attr-defined
caffe.nosuch()  # attr-defined
print(caffe.Net("net.prototxt", caffe.TEST).blob)  # attr-defined
print(sparknet.train("solver.prototxt", data).outcom)  # attr-defined
sparknet.spark.kept(print)  # attr-defined
sparknet.training.Plan()  # attr-defined

# wrong keywords
Convolution("conv", "data", num_outputs=3)  # call-arg
SolverParams(base_rl=0.1)  # call-arg
Net("net.prototxt", resise=28)  # call-arg
SparkModel("net.prototxt", colums={})  # call-arg
Trainer("solver.prototxt", workes=2)  # call-arg
caffe.Net("net.prototxt", caffe.TEST, wieghts="net.caffemodel")  # call-arg
SparkModel("net.prototxt").udf(["ip"], invalids="null")  # call-arg
sparknet.train("solver.prototxt", data, workes=2)  # call-arg
get_session(2, conf={})  # call-arg
NetEstimator("solver.prototxt", maxIters=3)  # call-arg
NetFeaturizer("net.prototxt", resise=28)  # call-arg
NetEstimator("solver.prototxt").setMaxIters(3)  # attr-defined

# keywords of before
NetFeaturizer("net.prototxt", layer="fc7")  # call-arg
Trainer("solver.prototxt", init_weights="a.caffemodel")  # call-arg
Trainer("solver.prototxt", weight="w")  # call-arg
Net("net.prototxt").quantize(data, float32=["ip"])  # call-arg
sparknet.train("solver.prototxt", data, init_weights="a.caffemodel")  # call-arg
ImageFiles("photographs", damaged="skip")  # call-arg

# wrong types
sparknet.train("solver.prototxt", data, workers="two")  # arg-type
Convolution("conv", "data", num_output="3")  # arg-type
Convolution("conv", "data", bias_term="no")  # arg-type
NetParams("net", 3)  # arg-type
SolverParams(base_lr="0.1")  # arg-type
Net(3)  # arg-type
Net("net.prototxt", color="rbg")  # arg-type
SparkModel("net.prototxt", 3)  # arg-type
Trainer("solver.prototxt", workers="two")  # arg-type
caffe.get_solver(3)  # arg-type
SparkModel("net.prototxt").transform("data")  # arg-type
sparknet.train(3, data)  # arg-type
sparknet.train("solver.prototxt", 3)  # arg-type
sparknet.train("solver.prototxt", data, precision="bfloat16")  # arg-type
Trainer("solver.prototxt", invalid="skip")  # arg-type
Trainer("solver.prototxt", class_weights="balance")  # arg-type
Trainer("solver.prototxt").fit({"data": [1.0]})  # arg-type
Net("net.prototxt", precision="fp16")  # arg-type
Net("net.prototxt", backend=3)  # arg-type
Net("net.prototxt").set_training_data(3)  # arg-type
Net("net.prototxt").quantize(data, method="min")  # arg-type
SparkModel("net.prototxt", precision="half")  # arg-type
SparkModel("net.prototxt").udf(["ip"], invalid="drop")  # arg-type
caffe.Net("net.prototxt", caffe.TEST, precision="half")  # arg-type
caffe.Net("net.prototxt", caffe.TEST).forward(data=open)  # arg-type
get_session("two")  # arg-type
NetEstimator("solver.prototxt", maxIter="many")  # arg-type
NetEstimator("solver.prototxt", handleInvalid="null")  # arg-type
NetEstimator("solver.prototxt").setFeaturesCol(3)  # arg-type
