# Two commands matter: `make demo` and `make test`.  Each sets up what it needs
# in .venv, says what it does, and does nothing twice.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)
LOWEST_PYTHON ?= $(shell for p in python3.10 $(wildcard $(HOME)/.pyenv/versions/3.10.*/bin/python3.10) python3.11 $(PYTHON); do \
	$$p -c '' 2>/dev/null && echo $$p && break; done)
ifeq ($(origin CXX),default)
CXX := c++
endif
CLANG ?= clang
# In front of what a Python without sanitizers loads.
SANITIZERS = $(foreach one,libasan.so libubsan.so libstdc++.so.6,$(shell $(CXX) -print-file-name=$(one)))
# Every build of CI has the compiler's warnings as errors, those of packages too: their files are compiled once.
ifdef CI
export SKBUILD_CMAKE_DEFINE := SPARKNET_WERROR=ON
endif
VENV := .venv
PY := $(VENV)/bin/python
TOOLS := $(abspath $(VENV))/bin
# For the builds of packages, too, in environments of their own.
export CXX
export SPARKNET_TOOLS := $(TOOLS)
# Hundreds of processes import the package: Python compiles it once, even where the shell's setting forbids that.
unexport PYTHONDONTWRITEBYTECODE
BASE := $(VENV)/.base
RUNS := $(VENV)/.runs
DEPS := $(VENV)/.deps
PAGES := sparknet/dsl/typed.pyi
BUILT := $(VENV)/.built
SOURCES := CMakeLists.txt $(shell find native proto -type f -not -name '*.pyc' 2>/dev/null)
# Around a step: how long it took; two steps run at a time.
BEGIN = date +%s > $(VENV)/$(@F).began
TOOK = echo "    $$(($$(date +%s) - $$(cat $(VENV)/$(@F).began))) s: $(1)"
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)

# Of each process of tests: more would wait for the cores that the other processes have.  sanitize-python takes as many as
# there are cores, so that both ways are tested.
THREADS ?= 1
# The version of PyTorch that its engine and its modules are tested with.
TORCH ?= 2.13.0

.PHONY: demo test check test-without-onednn test-aarch64 test-slow test-lowest test-cluster test-long test-torch test-gpu test-peers test-mlflow collected bench bench-peers bench-strategies bench-spark lint format layers docs wheel sanitize sanitize-python fuzz fuzz-guided fuzz-kernels fuzz-engines fuzz-onnx fuzz-modules mutants clean setup
.DELETE_ON_ERROR:

# Without the tools of tests, linters and docs, which setup installs.
demo: $(BASE)
	@$(MAKE) --no-print-directory --jobs=2 $(BUILT) $(RUNS)
	@$(BEGIN)
	@echo '==> training LeNet on handwritten digits by two workers of a local Spark'
	@$(PY) examples/digits_spark.py
	@$(call TOOK,the demo)

# ROOM=training: one room's; TESTS='tests/dsl tests/net': what is named.
test: setup
	@echo '==> tests'
	@$(if $(TESTS)$(ROOM),,$(PY) -m tests.spark.java)
	@OMP_NUM_THREADS=$(THREADS) $(PY) -m pytest -m 'not slow' -n $(JOBS) $(or $(TESTS),$(ROOM:%=tests/%))

# Before a commit: what CI refuses soonest.
check: lint
	@echo '==> tests of what changed since main'
	@$(PY) .ci/changed.py $(BASE) | OMP_NUM_THREADS=$(THREADS) xargs -r $(PY) -m pytest -m 'not slow' -n $(JOBS)

test-slow: setup
	@echo '==> slow tests: packaging, long trainings, long fuzzing seeds'
	@OMP_NUM_THREADS=$(THREADS) $(PY) -m pytest -m 'slow and not long' -n $(JOBS) --dist worksteal --durations=12 \
		$(or $(TESTS),--ignore=tests/spark --ignore=tests/examples)

# The rooms that speak with a dependency; layers and engine are the same code with any. Each night LOWEST=tests: all.
LOWEST := tests/proto tests/native tests/dsl tests/weights $(wildcard tests/caffe/test_*goldens.py) \
	$(patsubst %,tests/spark/test_%.py,backend columns frame model trainer worker_daemon)

test-lowest:
	@echo '==> tests in a bare copy of the tree, on the lowest versions that pyproject.toml names'
	@rm -rf build/lowest && mkdir -p build/lowest
	@git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -pt build/lowest
	@$(MAKE) -C build/lowest test VERSIONS=--lowest PYTHON="$(LOWEST_PYTHON)" TESTS="$(LOWEST)"

test-cluster: setup
	@echo '==> slow tests on Spark: killed executors and drivers, Connect, spark-submit, examples'
	@$(PY) -m tests.spark.java
	@OMP_NUM_THREADS=$(THREADS) $(PY) -m pytest -m 'slow and not long' -n 2 --dist loadgroup --durations=12 tests/spark tests/examples

# What such a build has; PyTorch computes its nets.
WITHOUT_ONEDNN := tests/native tests/loaders tests/net/test_without_onednn.py \
	--deselect 'tests/loaders/test_untrusted_files.py::test_four_times_as_much_takes_four_times_as_long[net]'

test-without-onednn: setup
	@echo '==> C and Python tests of the core without oneDNN, in a copy of the tree'
	$(call own_extension,build/without_onednn,-DSPARKNET_ONEDNN=OFF -DSPARKNET_TESTS=ON -DSPARKNET_WERROR=ON)
	@PATH="$(TOOLS):$$PATH" ctest --test-dir build/without_onednn/native --output-on-failure
	@mkdir -p build/without_onednn/site
	@echo 'import sys; sys.meta_path[:] = [one for one in sys.meta_path if "_editable" not in type(one).__module__]' \
		> build/without_onednn/site/sitecustomize.py
	@cd build/without_onednn/tree && OMP_NUM_THREADS=$(THREADS) \
		PYTHONPATH="$(abspath build/without_onednn/site):$(abspath build/without_onednn/tree)" \
		$(abspath $(PY)) -m pytest -m 'not slow' -n $(JOBS) $(or $(TESTS),$(WITHOUT_ONEDNN))

# By Debian's cross compiler (g++-aarch64-linux-gnu) in its emulator (qemu-user).
test-aarch64: setup
	@echo '==> C tests of the core for aarch64, in an emulator'
	@command -v aarch64-linux-gnu-g++ > /dev/null && command -v qemu-aarch64 > /dev/null \
		|| { echo 'no cross compiler or no emulator: apt-get install g++-aarch64-linux-gnu qemu-user' >&2; exit 1; }
	@mkdir -p build
	@PATH="$(TOOLS):$$PATH" cmake -S . -B build/aarch64 -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
		-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
		'-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;/usr/aarch64-linux-gnu' -DSPARKNET_EXTENSION=OFF -DSPARKNET_TESTS=ON \
		-DSPARKNET_WERROR=ON > build/aarch64.log 2>&1 || { cat build/aarch64.log; exit 1; }
	@PATH="$(TOOLS):$$PATH" cmake --build build/aarch64
	@PATH="$(TOOLS):$$PATH" ctest --test-dir build/aarch64 --output-on-failure

# PyTorch takes gigabytes, which stay out of the environment of all other tests.
# With its engine run the recorded cases; with LONG=1, each night, the suites of nets, of training and of Spark that compute most.
RECORDED := tests/caffe/test_layer_goldens.py tests/caffe/test_net_goldens.py tests/caffe/solvers
ENGINE_TESTS := $(if $(LONG),tests/caffe tests/net tests/onnx tests/weights tests/predict tests/training/strategies \
	$(patsubst %,tests/spark/test_%.py,backend model onnx shared_weights stages trainer),$(RECORDED))
test-torch: setup
	@echo '==> PyTorch: its modules trained by several workers, on Spark too'
	@$(PY) -m venv build/torch
	@$(PY) -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> "$$(build/torch/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/all.pth"
	@$(PY) .ci/requirements.py --extra torch \
		| xargs build/torch/bin/python -m pip install --quiet --disable-pip-version-check torch==$(TORCH)
	@$(PY) -m tests.spark.java
	@OMP_NUM_THREADS=$(THREADS) build/torch/bin/python -m pytest $(if $(LONG),,-m 'not long') -n $(JOBS) tests/torch
	@echo '==> the engine of PyTorch: the suites of nets, with memory shared with the host, apart from it, and with passes that are recorded'
	@SPARKNET_ENGINE=torch OMP_NUM_THREADS=$(THREADS) build/torch/bin/python -m pytest -m 'not slow' -n $(JOBS) $(ENGINE_TESTS)
	@for plugin in no:cacheprovider tests.torch.taped; do \
		SPARKNET_ENGINE=torch SPARKNET_DEVICE=apart OMP_NUM_THREADS=$(THREADS) build/torch/bin/python -m pytest -m 'not slow' -n $(JOBS) \
			-p $$plugin $(RECORDED) || exit; done

# Where there is a GPU, and a PyTorch for it.
test-gpu:
	@for plugin in no:cacheprovider tests.torch.at_once; do \
		SPARKNET_ENGINE=torch SPARKNET_DEVICE=cuda $(or $(GPU_PYTHON),$(PY)) -m pytest -m 'not slow' -p $$plugin \
			$(RECORDED) || exit; done

# What CI lacks the packages for.
test-peers: setup
	@$(PY) .ci/requirements.py --extra bench | xargs $(PY) -m pip install --quiet --disable-pip-version-check
	@$(PY) -m pytest tests/onnx tests/benchmarks -k 'modules or torch or peers or choosing or guide or operators'

# MLflow brings a hundred packages, which stay out of the environment of all other tests.
test-mlflow: setup
	@echo '==> MLflow: models and trainings through its own servers'
	@$(PY) -m venv build/mlflow
	@$(PY) -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> "$$(build/mlflow/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/all.pth"
	@{ $(PY) .ci/requirements.py --extra mlflow | grep -v sparknet; $(PY) .ci/requirements.py --extra torch; } \
		| xargs build/mlflow/bin/python -m pip install --quiet --disable-pip-version-check torch==$(TORCH)
	@MLFLOW_DISABLE_TELEMETRY=true OMP_NUM_THREADS=$(THREADS) build/mlflow/bin/python -m pytest tests/mlflow

# The last step of CI: what no step has collected.
collected:
	@$(PYTHON) .ci/collected.py build/ci/collected

# What CI has no time for; make test-torch LONG=1 runs what is of PyTorch.
test-long: setup
	@$(PY) -m pytest -m long --durations=0 --durations-min=1 --ignore=tests/torch

bench: setup
	@$(PY) -m benchmarks.ndarray
	@$(PY) -m benchmarks.model_file
	@$(PY) -m benchmarks.memory
	@$(PY) -m benchmarks.comm
	@$(PY) -m benchmarks.backend

bench-strategies: setup
	@$(PY) -m benchmarks.strategies --write

bench-spark: setup
	@$(PY) -m benchmarks.spark_sync
	@$(PY) -m benchmarks.jobs --rows 256 --engines sparknet-float32 udf-onnxruntime
	@$(PY) -m benchmarks.spark_strategies --write

bench-peers: setup
	@$(PY) -m benchmarks.peers $(ARGS)

lint: setup
	@echo '==> ruff, mypy, clang-format'
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@find native \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' \) -print0 \
		| xargs -0 $(VENV)/bin/clang-format --dry-run --Werror

format: setup
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .
	@find native \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' \) -print0 \
		| xargs -0 $(VENV)/bin/clang-format -i

layers: setup

docs: setup
	@echo '==> the documentation as a site: build/site/index.html'
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet

# MACHINE=aarch64: by Debian's cross compiler (g++-aarch64-linux-gnu).
wheel: setup
	@echo '==> a wheel that needs no compiler, and the archive of the source, in dist'
	@rm -rf dist
	@$(PY) .ci/wheel.py dist $(MACHINE)
	@$(PY) -m build --sdist --outdir dist > /dev/null

# $(call own_extension,FOLDER,OPTIONS): a copy of the tree in FOLDER/tree, with an extension of its own.
define own_extension
	@mkdir -p $(1)/tree
	@git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -upt $(1)/tree
	@PATH="$(TOOLS):$$PATH" cmake -S $(1)/tree -B $(1)/native -G Ninja \
		-DSPARKNET_EXTENSION=ON -DPython_EXECUTABLE="$(abspath $(PY))" $(2) > $(1)/build.log 2>&1 || { cat $(1)/build.log; exit 1; }
	@PATH="$(TOOLS):$$PATH" cmake --build $(1)/native
endef

# One build for the C tests, the Python tests and the fuzzing.
sanitized_extension = $(call own_extension,build/sanitized,-DSPARKNET_SANITIZE=ON -DSPARKNET_WERROR=ON)

# $(call sanitized,OPTIONS): what runs a module on that extension.
sanitized = LD_PRELOAD="$(SANITIZERS)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=64:$(1) \
	PYTHONPATH=.ci SPARKNET_UNTRUSTED_MEMORY=1g $(abspath $(PY)) .ci/sanitized.py

sanitize: setup
	@echo '==> C tests under AddressSanitizer and UBSan'
	$(sanitized_extension)
	@PATH="$(TOOLS):$$PATH" ctest --test-dir build/sanitized/native --output-on-failure

# Left out: a test whose process may have 160 MB more, which AddressSanitizer takes for itself.
sanitize-python: setup
	@echo '==> Python tests of loaders/ and caffe/ on an extension under AddressSanitizer and UBSan'
	$(sanitized_extension)
	@cd build/sanitized/tree && $(call sanitized,handle_segv=0:handle_sigbus=0) pytest -m 'not slow' \
		-p sanitized -n $(JOBS) \
		--deselect tests/loaders/test_blocks.py::test_files_larger_than_memory_are_streamed \
		$(or $(TESTS),$(if $(LONG),tests/loaders tests/caffe,tests/loaders $(RECORDED)))

# The readers, net building, transforms, Datums and snappy; findings land in tests/fuzz/seeds.
fuzz: setup
	@echo '==> damaged files into every reader, on an extension under AddressSanitizer and UBSan'
	$(sanitized_extension)
	@cd build/sanitized/tree && $(call sanitized,hard_rss_limit_mb=4096:max_allocation_size_mb=4096) \
		tests.fuzz --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED)) $(if $(KIND),--kind $(KIND)) --keep $(abspath tests/fuzz/seeds)

# Coverage of the native code needs clang and Atheris' own build of its sanitizers.
fuzz-guided: setup
	@$(PY) -m pip install --quiet --disable-pip-version-check 'atheris>=2.3'
	$(call own_extension,build/guided,-DSPARKNET_SANITIZE=ON -DSPARKNET_TESTS=OFF -DCMAKE_C_COMPILER=$(CLANG) -DCMAKE_CXX_COMPILER=$(subst clang,clang++,$(CLANG)) \
		-DCMAKE_C_FLAGS=-fsanitize=fuzzer-no-link -DCMAKE_CXX_FLAGS=-fsanitize=fuzzer-no-link)
	@cd build/guided/tree && GUIDED_PRELOAD="$$($(abspath $(PY)) -c \
		'import sysconfig; print(sysconfig.get_path("purelib"))')/asan_with_fuzzer.so" \
		$(abspath $(PY)) -m tests.fuzz.guided --seconds $(or $(SECONDS),300) --keep $(abspath tests/fuzz/seeds)

# Layers of published sizes against float64, under each instruction set in turns.  GUARD=1: reads and writes behind a
# block of memory end the process.
fuzz-kernels: setup
	@$(PY) -m tests.fuzz.kernels $(if $(ZOO),--zoo,--seconds $(or $(SECONDS),60)) $(if $(SEED),--seed $(SEED)) \
		$(if $(KIND),--kind $(KIND)) $(if $(GUARD),--guard) $(foreach isa,$(ISA),--isa $(isa))

# Drawn graphs against onnxruntime.
fuzz-onnx: setup
	@$(PY) -m tests.onnx --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

# Drawn nets in both engines, in the environment that test-torch makes.
fuzz-engines: setup
	@build/torch/bin/python -m tests.fuzz.engines --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

# Gradients of drawn modules through ONNX beside torch, in the environment that test-torch makes.
fuzz-modules: setup
	@build/torch/bin/python -m tests.torch.drawn_modules --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

# Of a room of sparknet/, or of native/convolution, native/forks, native/layers, native/engine or native/ndarray.
mutants: setup
	@test -n "$(ROOM)" || { echo 'which room? make mutants ROOM=training N=50 SEED=1' >&2; exit 1; }
	@$(PY) -m tests.mutants $(ROOM) --number $(or $(N),50) --seed $(or $(SEED),1) $(if $(TESTS),--tests $(TESTS))

clean:
	rm -rf build $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find sparknet -name '*.so' -delete
	rm -f sparknet/proto/_descriptor.py sparknet/proto/caffe_pb2.pyi sparknet/dsl/typed.pyi sparknet/spark/pipeline/typed.pyi docs/layers.md docs/settings.md

setup: $(PAGES)

# What the build makes of layer types and settings: two stubs and two pages of the docs.
$(PAGES): $(BUILT) $(RUNS) $(DEPS) $(shell find sparknet stubs docs -name '*.py')
	@$(PY) -m stubs sparknet
	@$(PY) -m docs

# $(call install,WHAT,OPTIONS): what .ci/requirements.py lists with these options.
define install
	@$(BEGIN)
	@echo '==> installing packages for $(1) into $(VENV) (once)'
	@$(PY) .ci/requirements.py $(2) $(VERSIONS) > $(VENV)/$(@F).txt
	@$(PY) -m pip install --quiet --disable-pip-version-check -r $(VENV)/$(@F).txt \
		|| { echo 'sparknet could not download its dependencies: check the network, or point pip at a mirror with PIP_INDEX_URL, and run make again' >&2; exit 1; }
	@$(call TOOK,packages for $(1))
	@touch $@
endef

$(BASE): pyproject.toml
	@test -n "$(PYTHON)" || { echo 'sparknet needs Python 3.10 or newer and found none: install one, or run make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo 'sparknet needs Python 3.10 or newer and $(PYTHON) is older: run make PYTHON=/path/to/python3' >&2; exit 1; }
	@command -v $(CXX) >/dev/null 2>&1 || { echo 'sparknet needs a C++17 compiler and found no $(CXX): install one (Debian and Ubuntu: apt-get install g++), or run make CXX=/path/to/compiler' >&2; exit 1; }
	@test -x $(PY) || { echo '==> creating $(VENV)'; $(PYTHON) -m venv $(VENV); } || { rm -rf $(VENV); echo 'sparknet could not create $(VENV): install the venv module of your Python (Debian and Ubuntu: apt-get install python3-venv)' >&2; exit 1; }
	$(call install,the build,--build)

$(RUNS): $(BASE)
	$(call install,the demo,--demo)

$(DEPS): $(BUILT) $(RUNS)
	$(call install,the tests and the linters)

$(BUILT): $(BASE) $(SOURCES)
	@command -v $(CXX) >/dev/null 2>&1 || { echo 'sparknet needs a C++17 compiler and found no $(CXX): install one (Debian and Ubuntu: apt-get install g++), or run make CXX=/path/to/compiler' >&2; exit 1; }
	@$(BEGIN)
	@echo '==> compiling the native core and installing sparknet (again when its sources change)'
	@mkdir -p build
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e . > build/install.log 2>&1 \
		|| { cat build/install.log >&2; echo 'sparknet did not build: the message above says where' >&2; exit 1; }
	@$(call TOOK,the native core)
	@touch $@
