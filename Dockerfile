# SPDX-License-Identifier: Apache-2.0
# An image with shardload and shardquery. docs/platforms.md describes it.
#
# NOT BUILT by the project's tests: no image registry can be reached from where they run. The commands of
# the two stages have been run in a bare Debian 12 (tools/bare-machine); tests/cli/test_container.py checks
# that the packages are those of the build, and that copied paths exist.
#
#   docker build -t shardload .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" shardload inspect people.csv

FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
        gcc libc6-dev make cmake pkg-config dpkg-dev file python3 \
        libmongoc-dev libbson-dev libyaml-dev libssl-dev zlib1g-dev libarchive-dev liblzma-dev \
        libzstd-dev liblz4-dev libbz2-dev libisal-dev
COPY CMakeLists.txt CHANGELOG.md README.md /shardload/
COPY cmake /shardload/cmake
COPY docs /shardload/docs
COPY examples /shardload/examples
COPY include /shardload/include
COPY models /shardload/models
COPY queries /shardload/queries
COPY schemas /shardload/schemas
COPY src /shardload/src
COPY tools /shardload/tools
WORKDIR /shardload
RUN cmake -S . -B build -DSHARDLOAD_TESTS=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    && cmake --build build -j "$(nproc)" \
    && cd build && cpack -G DEB

FROM debian:12-slim
COPY --from=build /shardload/build/shardload_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/shardload_*.deb \
    && rm -rf /var/lib/apt/lists/* /tmp/*.deb \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin shardload \
    && install -d -o shardload -g shardload /data
WORKDIR /data
USER shardload
ENTRYPOINT ["shardload"]
CMD ["--help"]
