import textwrap

TF = "import tensorflow as tf\n"
STEP = textwrap.dedent("""
    {decorator}
    def step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = compute(model(inputs), labels)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    for inputs, labels in data:
        step(inputs, labels)
    """)
FIT = "model = tf.keras.Sequential()\nmodel.fit(x, y)\n"
CASES = {
    "tf-eager-step": (
        [TF + STEP.format(decorator="")],
        [
            TF + STEP.format(decorator="@tf.function"),
            TF + STEP.format(decorator="@tf.function(jit_compile=True)"),
            TF + STEP.format(decorator="") + "step = tf.function(step)\n",
            TF
            + STEP.format(decorator="").replace("    step(inputs, labels)\n", "    all(inputs)\n")
            + "@tf.function\ndef all(inputs):\n    strategy.run(step, args=(inputs,))\n",
        ],
    ),
    "tf-eager-switch": (
        [
            TF + FIT + "model.compile(run_eagerly=True)",
            TF + FIT + "tf.config.run_functions_eagerly(True)",
        ],
        [
            TF + FIT + "model.compile(run_eagerly=False)",
            TF + FIT + "tf.config.run_functions_eagerly(False)",
        ],
    ),
    "tf-several-nodes": (
        [TF + FIT + "strategy = tf.distribute.MultiWorkerMirroredStrategy()"],
        [
            TF + FIT + "import os\nos.environ['TF_CONFIG'] = '{}'\n"
            "strategy = tf.distribute.MultiWorkerMirroredStrategy()",
            TF + FIT + "strategy = tf.distribute.MirroredStrategy()",
        ],
    ),
}  # fmt: skip
