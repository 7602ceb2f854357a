"""Somebody who adds predictions to tables, in DataFrames, SQL and pipelines."""

from pyspark.ml.tuning import ParamGridBuilder

from sparknet.spark import SparkModel, cut_out, local_session, read_images
from sparknet.spark.pipeline import NetEstimator, NetFeaturizer

session = local_session(2, memory="2g", config={"spark.ui.enabled": False})
photographs = read_images(session, "photographs")
model = SparkModel(
    "deploy.prototxt", "weights.caffemodel", columns={"data": "content"}, resize=256, crop=224
)
named = model.transform(
    photographs, ["prob"], top=5, labels="labels.txt", invalid="null", reason="why", key="path"
)
named.write.parquet("named")
score = model.udf(["prob"], batch=16, invalid="null", labels=["cat", "dog"], top=1)
photographs.select(score("content").alias("prob"), score(photographs["content"]))
model.register(session, "classify", ["prob"], vectors=False)
cut_out(named, "content", "found").show()
texts = SparkModel("bert.onnx", tokenizer="tokenizer.json", pooling="mean", precision="int8")
features = NetFeaturizer(model, inputCol="content", outputCol="deep", output="fc7")
stage = NetEstimator("solver.prototxt", featuresCol="pixels", maxIter=100, handleInvalid="skip")
fitted = stage.fit(features.transform(photographs))
grid = ParamGridBuilder().addGrid(stage.learningRate, [0.1, 0.01]).build()
longer = stage.setMaxIter(200).setStrategy("averaging:steps=5").getMaxIter() + 1
