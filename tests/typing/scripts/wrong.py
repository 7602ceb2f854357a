"""Wrong uses; each line ends with the code of the error that a type checker gives."""

import sparknet
from sparknet import Convolution, Net, NetParams, Poling, SolverParams, caffe  # attr-defined
from sparknet.dsl import Convlution  # attr-defined
from sparknet.loaders import Paquet  # attr-defined
from sparknet.spark import SparkModel, Trainer
from sparknet.training import AllReduced  # attr-defined

data = {"data": [1.0], "label": [0.0]}

# misspelt names
sparknet.trian("solver.prototxt", data)  # attr-defined
sparknet.Convolutoin("conv", "data")  # attr-defined
sparknet.models.nett("lenet")  # attr-defined
caffe.Nett("net.prototxt", caffe.TEST)  # attr-defined
Net("net.prototxt").foward(data)  # attr-defined
print(SolverParams(base_lr=0.1).base_rl)  # attr-defined

# wrong keywords
Convolution("conv", "data", num_outputs=3)  # call-arg
SolverParams(base_rl=0.1)  # call-arg
Net("net.prototxt", resise=28)  # call-arg
SparkModel("net.prototxt", colums={})  # call-arg
Trainer("solver.prototxt", workes=2)  # call-arg
caffe.Net("net.prototxt", caffe.TEST, wieghts="net.caffemodel")  # call-arg

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
