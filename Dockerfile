# linserve as an image:  docker build --target cpu -t linserve:0.1.0-cpu .
# or, as root and without a daemon:
#   buildah bud --format docker --isolation chroot --storage-driver vfs --target cpu -t linserve:0.1.0-cpu .
# The stages: what it is built from, its build, and what runs; for the CPU, and for NVIDIA's GPUs.
ARG BASE=docker.io/library/debian:12-slim

FROM ${BASE} AS dependencies
WORKDIR /linserve
# Nothing but these lists decides what is installed: changed sources leave the layer as it is.
COPY deploy/alone deploy/install deploy/packages.txt deploy/requirements-cpu.txt deploy/
RUN deploy/install && rm -rf /var/lib/apt/lists/* ~/.cache

FROM ${BASE} AS dependencies-cuda
WORKDIR /linserve
COPY deploy/alone deploy/install deploy/packages.txt deploy/requirements-cuda.txt deploy/requirements-nvcc.txt deploy/
RUN deploy/install --cuda && rm -rf /var/lib/apt/lists/* ~/.cache

FROM dependencies AS build
COPY . .
ARG COMMIT=unknown
RUN cmake --preset release -D LINSERVE_TESTS=OFF -D LINSERVE_CUDA=OFF -D LINSERVE_COMMIT=${COMMIT} && \
    cmake --build --preset release && \
    cmake --install build/release --prefix /opt/linserve --strip

FROM dependencies-cuda AS build-cuda
COPY . .
ARG COMMIT=unknown
RUN cmake --preset cuda -D LINSERVE_TESTS=OFF -D LINSERVE_COMMIT=${COMMIT} && \
    cmake --build --preset cuda && \
    cmake --install build/cuda --prefix /opt/linserve --strip

FROM ${BASE} AS runtime
COPY deploy/packages-runtime.txt /tmp/
RUN apt-get update -q && \
    sed 's/#.*//' /tmp/packages-runtime.txt | xargs \
      env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends && \
    rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* /tmp/packages-runtime.txt && \
    mkdir /models
# A file of defaults, over which a configuration file wins, as it would not over variables.
ENV PATH=/opt/linserve/bin:$PATH \
    LINSERVE_DEFAULTS=/opt/linserve/share/linserve/container.json
EXPOSE 8500 8080
# No name: an image has no users beyond Debian's. Nothing is written, so the root may be read-only.
USER 65532:65532
HEALTHCHECK --interval=5s --timeout=3s --start-period=10m --retries=3 \
  CMD ["linserve-client", "health"]
ENTRYPOINT ["tini", "--", "linserve"]
CMD ["serve"]
ARG VERSION=0.1.0
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="linserve" \
      org.opencontainers.image.description="Serves linear-time attention transformers over gRPC" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}"

FROM runtime AS cuda
# And where Google's plug-in for GPUs mounts the driver.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    LD_LIBRARY_PATH=/usr/local/nvidia/lib64
COPY --from=build-cuda /opt/linserve /opt/linserve

# The last stage, and so what a build without --target makes.
FROM runtime AS cpu
# It holds nothing for GPUs, and need not be told that there is none.
ENV LINSERVE_DEVICE=cpu
COPY --from=build /opt/linserve /opt/linserve
