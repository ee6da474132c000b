# The image of pyoco-runtime: one program, all roles. Settings come from the environment (PYOCO_ROLE=gateway, ...).
# docs/how-to/build-the-image.md tells how to build and extend it; tests/deploy/test_image.py runs these steps without an
# engine, so keep to the forms that it knows: plain COPY, RUN in one shell, and the exec forms at the end.

ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
WORKDIR /build
# What is needed to make our wheel stays in this stage.
RUN python -m venv /build/tools
COPY requirements.build.lock ./
RUN /build/tools/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.build.lock
# The dependencies have a layer of their own: it is kept as long as the lock stays the same.
RUN python -m venv /opt/pyoco
COPY requirements.runtime.lock ./
RUN /opt/pyoco/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.runtime.lock
COPY pyproject.toml README.md ./
COPY src ./src
RUN /build/tools/bin/python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /build/dist .
RUN /opt/pyoco/bin/python -m pip install --no-cache-dir --no-deps --no-index /build/dist/*.whl
COPY deploy/healthcheck.py /opt/pyoco/healthcheck.py
RUN mkdir -p /build/home

FROM ${PYTHON_IMAGE}
COPY --from=build /opt/pyoco /opt/pyoco
# The only place that is written to: wheels that a worker installs, and the embedded server's store in the role all.
COPY --from=build --chown=10001:10001 /build/home /var/lib/pyoco
ENV PATH=/opt/pyoco/bin:$PATH \
    HOME=/var/lib/pyoco \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYOCO_LOAD_DOTENV=0 \
    PYOCO_HOST=0.0.0.0 \
    PYOCO_WORKER_PROBE_HOST=0.0.0.0 \
    PYOCO_WORKER_PROBE_PORT=8081 \
    PYOCO_WHEEL_SYNC_DIR=/var/lib/pyoco/wheels \
    PYOCO_NATS_STORE_DIR=/var/lib/pyoco/nats
WORKDIR /var/lib/pyoco
USER 10001:10001
EXPOSE 8000 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["python", "/opt/pyoco/healthcheck.py", "/health"]
ENTRYPOINT ["pyoco-runtime"]
